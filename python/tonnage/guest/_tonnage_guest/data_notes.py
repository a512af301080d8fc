# SPDX-License-Identifier: Apache-2.0
"""What stood in for data is written into the run's folder, one line each, whatever process it was in (`--data shape`).

A line of state/data is "kind TAB bytes TAB count TAB assumed TAB path"; src/supervise/data_stand_ins.c adds them up. kind: "images", of which there
is a line for each file, or "data_set". bytes: those that were not read or not there. assumed: what nobody knows, words with commas between
them, or "-".
"""

import os

_MOST = 200000  # lines of a process: an epoch of ImageNet would be no report
_seen = set()


def note(kind, bytes_, count, assumed, path):
    """Once for each path in a process and those that it forks; two threads may do it twice, which is added up once. Never raises."""
    try:
        if (kind, path) in _seen or len(_seen) >= _MOST:
            return
        _seen.add((kind, path))
        name = os.fsencode(path).translate(None, b"\t\n")
        line = b"%s\t%d\t%d\t%s\t%s\n" % (kind.encode(), bytes_, count, (assumed or "-").encode(), name[:4096])
        fd = os.open(os.path.join(os.environ["TONNAGE_RUN"], "state", "data"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)
    except (OSError, KeyError, ValueError):
        pass
