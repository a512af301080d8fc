"""Transforms of PyTorch, and a plan by cuFFT's own interface. Prints what each took beyond its result."""
import ctypes
import sys

import torch


def extra(name, function, *arguments):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = function(*arguments)
    after = torch.cuda.memory_allocated()
    print(name, torch.cuda.max_memory_allocated() - after, after - before)
    del result


wave = torch.randn(64, 1 << 16, device="cuda")
extra("fft", torch.fft.fft, torch.view_as_complex(wave.view(64, -1, 2)))
extra("fft of a prime", torch.fft.fft, torch.view_as_complex(wave.view(-1)[: 2 * 64 * 10007].view(64, 10007, 2)))
extra("fft2", torch.fft.fft2, torch.view_as_complex(wave.view(16, 256, -1, 2)))
spectrum = torch.stft(wave, 1024, window=torch.hann_window(1024, device="cuda"), return_complex=True)
print("stft", tuple(spectrum.shape))

fft = ctypes.CDLL("libcufft.so.12" if torch.version.cuda.startswith("13") else "libcufft.so.11")
free, _ = torch.cuda.mem_get_info()
plan, size = ctypes.c_int(), ctypes.c_size_t()
assert fft.cufftPlan1d(ctypes.byref(plan), 1 << 20, 0x29, 4) == 0
assert fft.cufftGetSize(plan, ctypes.byref(size)) == 0
print("own area", size.value, free - torch.cuda.mem_get_info()[0])
assert fft.cufftExecC2C(plan, ctypes.c_void_p(wave.data_ptr()), ctypes.c_void_p(wave.data_ptr()), -1) == 0
assert fft.cufftDestroy(plan) == 0 and fft.cufftDestroy(plan) == 1
print("given back", free - torch.cuda.mem_get_info()[0])
# torch asks the card whether the windows overlap: a made-up truth, which a retry may have to turn round.
print("istft", tuple(torch.istft(spectrum, 1024, window=torch.hann_window(1024, device="cuda")).shape))
