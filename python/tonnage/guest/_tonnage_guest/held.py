# SPDX-License-Identifier: Apache-2.0
"""What was held back is counted in the run's folder: one line a call, whatever process it was in, with torch or without."""

import os


def closed():
    """True in a run that sends nothing that it made up."""
    return os.environ.get("TONNAGE_NETWORK", "closed") != "allow" and bool(os.environ.get("TONNAGE_RUN"))


def walled():
    """True where the run has a table of its connections (src/preload/network.h)."""
    return os.path.exists(os.path.join(os.environ.get("TONNAGE_RUN", "/nowhere"), "state", "network"))


def count(library, name, kind="call"):
    """Never raises. A short line is appended whole."""
    try:
        line = "%s\t%s\t%s\n" % (kind, library, name)
        path = os.path.join(os.environ["TONNAGE_RUN"], "state", "held")
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line.encode("utf-8", "replace")[:1024])
        finally:
            os.close(fd)
    except (OSError, KeyError):
        pass


def folder(name):
    """A folder of the run for what would have gone elsewhere."""
    path = os.path.join(os.environ.get("TONNAGE_RUN", "/tmp"), "scratch", "tmp", name)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError:
        pass
    return path
