# SPDX-License-Identifier: Apache-2.0
"""Two training steps of a convolutional net, with every convolution that goes to cuDNN written down as PyTorch calls it,
and what the virtual cuDNN was given to work in: `call ...` and `workspace N` lines, and the seconds of its steps.
Arguments: net, mode (fp32, amp, channels_last, benchmark), batch."""

import ctypes
import sys
import time

import torch
import torchvision
from torch.utils._python_dispatch import TorchDispatchMode

TYPES = {torch.float32: 0, torch.float16: 2, torch.bfloat16: 9}  # cudnnDataType_t
CUDNN = 3  # enum tn_library


class UNet(torch.nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        block = lambda a, b: torch.nn.Sequential(  # noqa: E731
            torch.nn.Conv2d(a, b, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(b, b, 3, padding=1), torch.nn.ReLU())
        widths = [3] + [width << level for level in range(depth)]
        self.down = torch.nn.ModuleList(block(a, b) for a, b in zip(widths, widths[1:]))
        self.up = torch.nn.ModuleList(block(b + a, a) for a, b in zip(widths[1:-1], widths[2:]))
        self.last = torch.nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = torch.nn.functional.max_pool2d(x, 2)
        x = kept.pop()
        for layer in reversed(self.up):
            x = torch.nn.functional.interpolate(x, scale_factor=2)
            x = layer(torch.cat([x, kept.pop()], 1))
        return self.last(x)


def alignment(tensor):
    return next((bytes for bytes in (1, 2, 4, 8, 16) if tensor.data_ptr() % (2 * bytes)), 32)


class Calls(TorchDispatchMode):
    """Writes down convolutions; what PyTorch makes contiguous before cuDNN is done here as well. Batch normalisation is
    cuDNN's as well in channels-last: what that is given is no convolution's, and is not noted."""

    def __init__(self, device):
        super().__init__()
        self.device = device
        self.lines = []

    def note(self, direction, x, w, y, padding, stride, dilation):
        like = torch.channels_last if self.is_last(x, w) else torch.contiguous_format
        x, w, y = (tensor.contiguous(memory_format=like) for tensor in (x, w, y))
        tf32 = torch.backends.cudnn.allow_tf32
        words = [direction, TYPES[x.dtype], min(map(alignment, (x, w, y))), int(tf32)]
        for tensor in (x, w, y):  # where a size is 1, the strides follow the layout's formula
            words += [*tensor.size(), *torch.empty(tensor.size(), device="meta", memory_format=like).stride()]
        self.lines.append([*words, *padding, *stride, *dilation])

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.device.tn_vgpu_memory_log_enable(0 if "batch_norm" in function.__name__ else 1)
        result = function(*arguments, **(keywords or {}))
        if function is torch.ops.aten.convolution.default:
            x, w, _bias, stride, padding, dilation, transposed, out_padding, groups = arguments
            if self.goes_to_cudnn(x, w, stride, padding, dilation, transposed, out_padding, groups):
                self.note(0, x, w, result, padding, stride, dilation)
        elif function is torch.ops.aten.convolution_backward.default:
            dy, x, w, _sizes, stride, padding, dilation, transposed, out_padding, groups, mask = arguments
            if self.goes_to_cudnn(x, w, stride, padding, dilation, transposed, out_padding, groups):
                for direction in (1, 2):
                    if mask[direction - 1]:
                        self.note(direction, x, w, dy, padding, stride, dilation)
        return result

    @staticmethod
    def is_last(x, w):
        return any(t.is_contiguous(memory_format=torch.channels_last) and not t.is_contiguous() for t in (x, w))

    @staticmethod
    def goes_to_cudnn(x, w, stride, padding, dilation, transposed, out_padding, groups):
        backend = torch._C._select_conv_backend(x, w, None, stride, padding, dilation, transposed, out_padding, groups, None)
        return backend == torch._C._ConvBackend.Cudnn


class Note(ctypes.Structure):
    _fields_ = [("time", ctypes.c_uint64), ("address", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("kind", ctypes.c_uint32), ("library", ctypes.c_uint32)]  # fmt: skip


def main():
    name, mode, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    device = ctypes.CDLL("libtonnage-vgpu.so")
    device.tn_vgpu_memory_log_read.restype = ctypes.c_uint64
    net = (UNet() if name == "unet" else getattr(torchvision.models, name)()).cuda()
    last = mode == "channels_last"
    net = net.to(memory_format=torch.channels_last) if last else net
    x = torch.randn(batch, 3, 96 if name == "unet" else 224, 96 if name == "unet" else 224, device="cuda")
    x = x.to(memory_format=torch.channels_last) if last else x
    torch.backends.cudnn.benchmark = mode == "benchmark"
    torch.backends.cudnn.benchmark_limit = 0  # every plan, not only the first ten
    calls = Calls(device)
    begun = time.monotonic()
    for _ in range(2):
        with torch.autocast("cuda", torch.bfloat16, enabled=mode == "amp"), calls:
            loss = net(x).sum()
        with calls:
            loss.backward()
    print(f"seconds {time.monotonic() - begun:.3f}")
    notes = (Note * 65536)()
    count = device.tn_vgpu_memory_log_read(notes, 65536)
    for line in calls.lines:
        print("call", *line)
    for note in notes[:count]:
        if note.kind == 1 and note.library == CUDNN:
            print("workspace", note.bytes)


main()
