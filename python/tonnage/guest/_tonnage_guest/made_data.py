# SPDX-License-Identifier: Apache-2.0
"""`--data shape` (doc/design/0042-data.md): images that nobody decodes, and data that is not there.

An image of 64 by 64 or more with three channels or more is black, at the size that its header has. Decoding is most of what a job on images
does on the CPU, and no kernel sees the pixels. Small images and those of one channel are decoded: they are cheap, and masks and
digits are read on the CPU. An image file that is empty, a hole, or cut off behind its header is as large as its header says,
else as image_sizes has it.

Functions are replaced as their module's import ends, before anybody can bind them. They work in every process of the run, also where the
rest of the hook does nothing: in workers of data loaders, forked or spawned.
"""

import functools
import io
import os
import threading
import zlib

from . import data_notes, guard, image_sizes, imports, made_sets, made_tables
from .state import state

_LEAST = 64  # of an image that is not decoded, each way
_now = threading.local()  # the file that torchvision has read on this thread


def install():
    """Waits for the libraries that decode images and read data sets."""
    imports.watch("PIL.Image", _watch_open)
    imports.watch("PIL.ImageFile", _watch_load)
    imports.watch("PIL.WebPImagePlugin", functools.partial(_watch_own_load, "WebPImageFile"))
    imports.watch("PIL.AvifImagePlugin", functools.partial(_watch_own_load, "AvifImageFile"))
    imports.watch("PIL.PngImagePlugin", _watch_verify)
    imports.watch("torchvision.io.image", _watch_torchvision)
    imports.watch("torchvision.datasets.mnist", made_sets.watch_mnist)
    imports.watch("torchvision.datasets.cifar", made_sets.watch_cifar)
    imports.watch("datasets.utils.file_utils", made_tables.watch_files)
    imports.watch("datasets.table", made_tables.watch_tables)


# ---- Pillow ----


@guard.alone
def _watch_load(module):
    _replace_load(module.ImageFile)


@guard.alone
def _watch_own_load(name, module):
    _replace_load(getattr(module, name))


def _replace_load(kind):
    original = kind.__dict__["load"]

    @functools.wraps(original)
    def load(self):
        if _is_large(self) and _blacken(self):
            return original(self)  # which finds nothing to decode
        try:
            return original(self)
        except (OSError, SyntaxError, EOFError, ValueError):
            if not _blacken(self):
                raise
            return original(self)

    kind.load = load


def _is_large(image):
    """An image that was opened and not loaded yet. TIFF is decoded: its size may change as it is loaded."""
    try:
        width, height = image.size
        from PIL import Image

        large = width >= _LEAST and height >= _LEAST and Image.getmodebands(image.mode) >= 3
        return large and "made_data" not in state.lost and _pixels(image) is None and image.format != "TIFF" and image.fp is not None
    except Exception:
        return False


def _pixels(image):
    return image._im if hasattr(image, "_im") else image.__dict__.get("im")


def _blacken(image):
    """True where the image is black now, at its size; False where nothing was done."""
    try:
        from PIL import Image

        if not image.size[0] or not image.size[1] or image.fp is None:
            return False
        file = image.fp
        _note_image(getattr(image, "filename", "") or getattr(file, "name", ""), file)
        if type(image).__name__ == "WebPImageFile":
            image._WebPImageFile__loaded = image._WebPImageFile__logical_frame
        image.im = Image.core.new(image.mode, image.size)
        image.tile, image.readonly = [], 0
        if image._exclusive_fp and getattr(image, "_close_exclusive_fp_after_loading", True):
            file.close()
        image.fp = None
        return True
    except Exception as error:
        guard.lose("made_data", error)
        return False


@guard.alone
def _watch_verify(module):
    """A check of sums, which an image without its bytes does not pass: nobody asks whether values are right."""

    def verify(self):
        if self._exclusive_fp and self.fp:
            self.fp.close()
        self.fp = None

    module.PngImageFile.verify = verify


@guard.alone
def _watch_open(module):
    original = module.open

    @functools.wraps(original)
    def open_(fp, *args, **kwargs):
        try:
            return original(fp, *args, **kwargs)
        except (module.UnidentifiedImageError, SyntaxError, EOFError, OSError) as error:
            made = None if isinstance(error, FileNotFoundError) else _made_image(module, fp)
            if made is None:
                raise
            return made

    open_.__name__ = original.__name__
    module.open = open_


def _made_image(module, fp):
    """For a file of which Pillow makes nothing; None where that is right: it has bytes, and they are no image's."""
    try:
        name, size, head = _look(fp)
        if head is None or not (image_sizes.is_missing(head) or image_sizes.is_cut(head)):
            return None
        known = image_sizes.of_header(head)
        width, height = known[:2] if known else image_sizes.plausible(size, name)
        image = module.new({1: "L", 4: "RGBA"}.get(known[2], "RGB") if known else "RGB", (width, height))
        image.format = module.registered_extensions().get(os.path.splitext(name)[1].lower(), "JPEG")
        image.filename = name
        _note(name, size, head, "" if known else "sizes")
        return image
    except Exception:
        return None  # no file that can be read twice: what Pillow says is right


def _look(fp):
    """The name of a file, how many bytes it has, and the first of them; head is None where it is no file of an image's name."""
    if hasattr(fp, "read"):
        name, where = str(getattr(fp, "name", "")), fp.tell()
        fp.seek(0)
        head = fp.read(image_sizes.HEAD)
        size = fp.seek(0, io.SEEK_END)
        fp.seek(where)
        return name, size, head
    name = os.fsdecode(fp)
    with open(name, "rb") as file:
        return name, os.fstat(file.fileno()).st_size, file.read(image_sizes.HEAD)


def _note_image(name, file):
    """Of a file of which the header was read."""
    try:
        if name:
            return _note(os.fsdecode(name), os.stat(name).st_size, b"", "")
        where = file.tell()
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        _note("", size, file.read(4096), "")
        file.seek(where)
    except (OSError, ValueError):
        pass


def _note(name, size, head, assumed):
    """An image that has no file is told from others by its first bytes."""
    path = os.path.abspath(name) if name else "(memory)/%08x-%d" % (zlib.crc32(head[:4096]), size)
    data_notes.note("images", size, 1, assumed, path)


# ---- torchvision ----


@guard.alone
def _watch_torchvision(module):
    _replace_read(module)
    for name in ("decode_image", "decode_jpeg", "decode_png", "decode_webp"):
        if hasattr(module, name):
            _replace_decode(module, name)


def _replace_read(module):
    original = module.read_file

    @functools.wraps(original)
    def read_file(path):
        try:
            data = original(path)
        except RuntimeError:
            if os.stat(path).st_size:
                raise
            import torch

            data = torch.empty(0, dtype=torch.uint8)  # torchvision refuses files without bytes
        _now.read = os.fspath(path), data.data_ptr()
        return data

    module.read_file = read_file


def _replace_decode(module, name):
    original = getattr(module, name)

    @functools.wraps(original)
    def decode(*args, **kwargs):
        data = args[0] if args else kwargs.get("input")
        if isinstance(data, (str, os.PathLike)):
            data = module.read_file(data)
        mode = args[1] if len(args) > 1 else kwargs.get("mode", module.ImageReadMode.UNCHANGED)
        if kwargs.get("apply_exif_orientation"):  # which may turn the image
            try:
                return original(*args, **kwargs)
            except RuntimeError:
                pass
        made = _made_tensor(module, data, mode, args[2:], kwargs)
        return original(*args, **kwargs) if made is None else made

    setattr(module, name, decode)


def _made_tensor(module, data, mode, others, kwargs):
    """None where the image is to be decoded."""
    try:
        import torch

        if not isinstance(data, torch.Tensor) or data.device.type != "cpu" or torch.device(kwargs.get("device", "cpu")).type != "cpu":
            return None
        if any(isinstance(each, (str, torch.device)) and torch.device(each).type != "cpu" for each in others):
            return None
        head = data[: image_sizes.HEAD].numpy().tobytes()
        known = image_sizes.of_header(head)
        if known is None and not image_sizes.is_missing(head):
            return None
        path, pointer = getattr(_now, "read", ("", None))
        path = path if pointer == data.data_ptr() else ""
        width, height, channels = known or (*image_sizes.plausible(data.numel(), path), 3)
        asked = {"GRAY": 1, "GRAY_ALPHA": 2, "RGB": 3, "RGB_ALPHA": 4, "RGBA": 4}
        channels = asked.get(mode.upper() if isinstance(mode, str) else mode.name, channels)
        if known and (width < _LEAST or height < _LEAST or channels < 3):
            return None
        deep = head[:4] == b"\x89PNG" and head[24] == 16
        _note(path, data.numel(), head, "" if known else "sizes")
        return torch.zeros((channels, height, width), dtype=torch.uint16 if deep else torch.uint8)
    except Exception as error:
        guard.lose("made_data", error)
        return None
