#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the write overlay costs programs that use many files, as ratios to the same program without Tonnage, and what single
calls cost. Writes bench/results/file_cost.csv: name, plain, inside a run, ratio (seconds of processor time of the program's
own, or microseconds a call; best of five). One column can be compared with the other, not with another machine's.

    python3 bench/file_cost.py            status 1 when a ratio is above its goal
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from places import TONNAGE

HERE = pathlib.Path(__file__).resolve().parent
GOALS = {"600 pictures": 1.15, "40,000 stat": 1.15}  # before the program writes anything, nothing is looked up

PROGRAM = r"""
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
here = ctypes.c_long(-100)

def best(work, clock=time.process_time):
    times = []
    for _ in range(5):
        begin = clock()
        work()
        times.append(clock() - begin)
    return min(times)

def pictures():
    for i in range(600):
        with open("pictures/%d" % i, "rb") as file:
            file.read()

def stats():
    for _ in range(40000):
        os.stat("pictures/7")

def calls(call, count=2000):
    def work():
        for _ in range(count):
            call()
    return best(work, time.perf_counter) / count * 1e6

print("600 pictures", best(pictures), sep="\t")
print("40,000 stat", best(stats), sep="\t")
print("getppid (not trapped)", calls(lambda: libc.syscall(ctypes.c_long(110)), 20000), sep="\t")
open("own", "w").close()
print("600 pictures after a write", best(pictures), sep="\t")
print("40,000 stat after a write", best(stats), sep="\t")
print("chmod by libc, a call", calls(lambda: os.chmod("own", 0o600)), sep="\t")
name = os.path.abspath("own").encode()
raw_name = os.path.join(os.environ.get("TONNAGE_RUN") or ".", "raw-own").encode()  # where a raw call may write
open(raw_name, "w").close()
mode = ctypes.c_long(0o600)
import socket, struct
one, other = socket.socketpair()
print("send by libc, a call", calls(lambda: (one.send(b"x"), other.recv(9))), sep="\t")
print("sendmsg by libc, a call", calls(lambda: (one.sendmsg([b"x"]), other.recv(9))), sep="\t")
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
address = struct.pack("=HH4s8x", 2, socket.htons(53), b"\x7f\0\0\1")
print("connect by libc, a call", calls(lambda: udp.connect(("127.0.0.1", 53))), sep="\t")
number = ctypes.c_long(udp.fileno())
print("connect by a raw call", calls(lambda: libc.syscall(ctypes.c_long(42), number, address, ctypes.c_long(16))), sep="\t")
def opened(flags):
    return lambda: os.close(os.open("own", flags))

file = ctypes.c_void_p
libc.fopen.restype, libc.fclose.argtypes = file, [file]
raw_flags = ctypes.c_long(os.O_WRONLY)
print("open for reading by libc, a call", calls(opened(os.O_RDONLY)), sep="\t")
print("open for writing by libc, a call", calls(opened(os.O_WRONLY)), sep="\t")
print("fopen for writing by libc, a call", calls(lambda: libc.fclose(libc.fopen(b"own", b"r+"))), sep="\t")
print("open for writing by a raw call", calls(lambda: os.close(libc.syscall(ctypes.c_long(257), here, raw_name, raw_flags))), sep="\t")
print("chmod by a raw call", calls(lambda: libc.syscall(ctypes.c_long(268), here, name, mode)), sep="\t")
"""


def measure(before, folder):
    done = subprocess.run([*before, sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True)
    rows = dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    if len(rows) < 7:
        sys.exit(f"file_cost: status {done.returncode}\n{done.stderr}")
    return {name: float(value) for name, value in rows.items()}


def main():
    with tempfile.TemporaryDirectory() as folder:
        pictures = pathlib.Path(folder, "pictures")
        pictures.mkdir()
        for i in range(600):
            (pictures / str(i)).write_bytes(os.urandom(100_000))
        plain = measure([], folder)
        os.unlink(pathlib.Path(folder, "own"))
        inside = measure([TONNAGE, "run", "--quiet", "--gpu", "t4", "--"], folder)
    lines = ["what,plain,inside,ratio"]
    for name in plain:
        lines.append(f'"{name}",{plain[name]:.6f},{inside[name]:.6f},{inside[name] / plain[name]:.2f}')
    (HERE / "results/file_cost.csv").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return any(inside[name] > goal * plain[name] for name, goal in GOALS.items())


if __name__ == "__main__":
    sys.exit(main())
