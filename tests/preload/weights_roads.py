# SPDX-License-Identifier: Apache-2.0
"""Looks at a file by every road that reads, and prints what it saw."""
import hashlib
import json
import mmap
import os
import shutil
import subprocess
import sys

file = sys.argv[1]
answers = {}


def memory(name):
    with open("/proc/self/status") as status:
        return int(status.read().split(name + ":")[1].split()[0])


def digest(pieces):
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    return total.hexdigest()


before = memory("RssFile")
answers["stat"] = os.stat(file).st_size
answers["lstat"] = os.lstat(file).st_size
folder = os.open(os.path.dirname(file), os.O_RDONLY)
answers["fstatat"] = os.stat(os.path.basename(file), dir_fd=folder).st_size
answers["scandir"] = [entry.stat().st_size for entry in os.scandir(folder) if entry.name == os.path.basename(file)]
fd = os.open(os.path.basename(file), os.O_RDONLY, dir_fd=folder)
about, size = os.fstat(fd), os.stat(file).st_size
answers["fstat"] = about.st_size
answers["same"] = os.path.samestat(about, os.stat(file))
answers["seek"] = [os.lseek(fd, 0, os.SEEK_END), os.lseek(fd, -100, os.SEEK_END)]
answers["end"] = [len(os.read(fd, 1 << 20)), len(os.read(fd, 1 << 20)), os.lseek(fd, 0, os.SEEK_CUR)]
answers["past"] = len(os.pread(fd, 1 << 16, size + 5))
answers["pread"] = digest(os.pread(fd, (1 << 20) + 77, at) for at in range(0, size, (1 << 20) + 77))
parts = [bytearray(100), bytearray(1 << 20), bytearray(3)]
answers["preadv"] = [os.preadv(fd, parts, 50), digest(parts)]
os.lseek(fd, 0, os.SEEK_SET)
answers["readv"] = [os.readv(fd, parts), digest(parts), os.lseek(fd, 0, os.SEEK_CUR)]
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
copy = os.dup(fd)
os.lseek(copy, 0, os.SEEK_SET)
with open(copy, "rb") as stream:
    answers["stream"] = digest(iter(lambda: stream.read(1 << 18), b""))
with open(file, "rb", buffering=0) as stream:
    answers["into"] = [stream.readinto(parts[1]), digest(parts)]
used = bytearray(b"u") * (8 << 20)
with open(file, "rb", buffering=0) as stream:
    answers["over"] = [stream.readinto(used), digest([used])]
with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
    answers["mmap"] = [len(view), digest([view])]
with mmap.mmap(fd, 0, access=mmap.ACCESS_COPY) as view:
    view[size // 2] = 7
    answers["private"] = [view[size // 2], view[size // 2 + 1], digest([view])]
with mmap.mmap(fd, 1 << 16, access=mmap.ACCESS_READ, offset=mmap.PAGESIZE) as view:
    answers["offset"] = digest([view])
answers["child"] = subprocess.run(["sha256sum"], stdin=os.open(file, os.O_RDONLY), capture_output=True).stdout.decode()
answers["wc"] = subprocess.run(["wc", "-c", file], capture_output=True).stdout.decode().split()[0]
target = os.path.join(os.environ.get("TMPDIR", "/tmp"), "copy-%d" % os.getpid())
shutil.copyfile(file, target)
with open(target, "rb") as stream:
    answers["copy"] = [os.stat(target).st_size, hashlib.sha256(stream.read()).hexdigest()]
os.unlink(target)
print(json.dumps({"answers": answers, "file_kib": memory("RssFile"), "file_kib_before": before}))
