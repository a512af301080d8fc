# SPDX-License-Identifier: Apache-2.0
"""How large an image is, from the first bytes of its file, or, without these, from how many bytes it has."""

import struct

_PIXELS = {  # a byte of a file stands for so many pixels of a photograph
    # ImageNet's training images: 1,281,167 in 138 GB, 469 x 387 on average (image-net.org): 1.7. COCO 2017: 118,287 in 18 GB, most of
    # them 640 x 480 (cocodataset.org): 2.0. Photographs of cameras are kept at a higher quality, thumbnails at a lower one: 1 to 5.
    "jpeg": 1.8,
    # Kodak's 24 images of 768 x 512 take 15 MB (r0k.us/graphics/kodak): 0.6. Drawings take less: 0.4 to 20.
    "png": 0.6,
    # 25 to 34 % smaller than JPEG of the same quality (developers.google.com/speed/webp): 1.3 to 7.
    "webp": 2.5,
    "bmp": 1 / 3,  # 3 bytes a pixel
}
_KINDS = {"jpg": "jpeg", "jpe": "jpeg", "jfif": "jpeg"}
USUAL = (500, 375)  # where nothing is known: the commonest size of ImageNet's and VOC's photographs
_LEAST, _MOST = 64, 8192
HEAD = 1 << 18  # bytes: previews and colour profiles stand before the size
_SIGNATURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"BM", b"GIF8", b"II*\0", b"MM\0*")


def plausible(bytes_, name=""):
    """The size of a photograph, three to four, of a file with so many bytes. 0: unknown."""
    if not bytes_:
        return USUAL
    kind = name.rpartition(".")[2].lower()
    pixels = bytes_ * _PIXELS.get(_KINDS.get(kind, kind), _PIXELS["jpeg"])
    width = int((pixels * 4 / 3) ** 0.5) // 4 * 4
    width = min(max(width, _LEAST), _MOST)
    return width, max(width * 3 // 4, _LEAST)


def of_header(head):
    """(width, height, channels) as the first bytes of a file have it; None where they do not."""
    try:
        if head[:3] == b"\xff\xd8\xff":
            return _of_jpeg(head)
        if head[:8] == b"\x89PNG\r\n\x1a\n" and head[12:16] == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", head, 16)
            return width, height, {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}[colour]
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _of_webp(head)
        if head[:2] == b"BM":
            width, height = struct.unpack_from("<ii", head, 18)
            return width, abs(height), 3
    except (struct.error, IndexError, KeyError):
        pass
    return None


def _of_jpeg(head):
    at = 2
    while head[at] == 0xFF:
        marker = head[at + 1]
        if marker in (0x01, 0xFF) or 0xD0 <= marker <= 0xD8:  # without a length
            at += 1 if marker == 0xFF else 2
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame begins
            height, width, channels = struct.unpack_from(">HHB", head, at + 5)
            return width, height, channels
        at += 2 + struct.unpack_from(">H", head, at + 2)[0]
    return None


def _of_webp(head):
    kind = head[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF, 3
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", head, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, 4 if bits >> 28 & 1 else 3
    if kind == b"VP8X":
        width, height = int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        return width, height, 4 if head[20] & 0x10 else 3
    return None


def is_missing(head):
    """True where these first bytes of a file are none: it is empty, or a hole."""
    return not head.strip(b"\0")


def is_cut(head):
    """True where a file begins as an image does."""
    return head.startswith(_SIGNATURES)
