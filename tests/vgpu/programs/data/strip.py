# SPDX-License-Identifier: Apache-2.0
"""strip.py FROM TO HOW: a copy of a folder of data without the data.

HOW for images: cut (to their headers), holes (of the whole length), empty. For Arrow files: cut, holes, gone; values: only the numbers and
letters are holes, how long everything is stays.
"""

import os
import pathlib
import shutil
import sys

source, to, how = sys.argv[1:]
shutil.copytree(source, to)


def holes_in(path):
    """[(begin, end)] of the last buffer of every column that there is, which has its values."""
    import pyarrow

    with pyarrow.memory_map(str(path)) as file:
        data = file.read_buffer(path.stat().st_size)
    for batch in pyarrow.ipc.open_stream(pyarrow.BufferReader(data)):
        for column in batch.columns:
            buffer = next(buffer for buffer in reversed(column.buffers()) if buffer is not None)
            yield buffer.address - data.address, buffer.address - data.address + buffer.size


def without(path, holes):
    """Whole pages in the holes are left out."""
    data = path.read_bytes()
    path.unlink()
    with path.open("wb") as file:
        file.truncate(len(data))
        at = 0
        for begin, end in sorted((-(-begin // 4096) * 4096, end // 4096 * 4096) for begin, end in holes):
            file.seek(at)
            file.write(data[at:max(at, begin)])
            at = max(at, end)
        file.seek(at)
        file.write(data[at:])


for path in pathlib.Path(to).rglob("*"):
    size = path.stat().st_size
    if path.suffix == ".jpg":
        os.truncate(path, 0 if how == "empty" else 1024)
    elif path.suffix != ".arrow":
        continue
    elif how == "gone":
        path.unlink()
    elif how == "values":
        without(path, list(holes_in(path)))
    else:
        os.truncate(path, 4096)
    if how == "holes":
        os.truncate(path, size)
