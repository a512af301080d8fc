"""Ranks that do not come to a good end: ending.py WAY. What the last rank does wrong stands behind the way's name."""

import atexit
import os
import signal
import sys
import time

os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "0"  # PyTorch waits a minute for a file that nobody reads

import torch
import torch.distributed as dist

if sys.argv[1] == "early":
    raise RuntimeError("a mistake of every rank")  # before there is a group
dist.init_process_group("nccl")
rank, last, way = dist.get_rank(), dist.get_world_size() - 1, sys.argv[1]
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
other = dist.new_group(backend="nccl")
values = torch.randn(1 << 20, device="cuda")
for group in (None, other):
    dist.all_reduce(values, group=group)
torch.cuda.synchronize()
if rank == last:
    print(f"run {os.environ['TONNAGE_RUN']} at {time.time():.3f}", flush=True)


def meet(*groups):
    for group in groups:
        dist.all_reduce(values, group=group)
        torch.cuda.synchronize()  # waits


def exchange(what, *words):
    """By the group's communicator: an unbatched call makes one of two ranks first."""
    for work in dist.batch_isend_irecv([dist.P2POp(what, *words)]):
        work.wait()


if way == "nothing":  # all is well
    meet(None, other)
elif rank != last:
    if way == "receive":
        dist.recv(values, last)
        torch.cuda.synchronize()  # waits for a send
    if way == "lengths" and rank == 0:
        for _ in range(100):
            exchange(dist.irecv, values[:4], last)
        torch.cuda.synchronize()  # waits for as much
    meet(None, other)
elif way == "skip":  # a collective is left out
    dist.broadcast(values[:4], 0)
    torch.cuda.synchronize()  # has skipped
elif way == "shapes":
    values = torch.randn((1 << 20) + 1, device="cuda")
    dist.all_reduce(values)  # of another size
    torch.cuda.synchronize()
elif way == "order":
    meet(other, None)
elif way == "send":
    exchange(dist.isend, values[:1], 0)
    torch.cuda.synchronize()  # has sent to nobody
elif way == "lengths":  # after many that were right
    for number in range(100):
        exchange(dist.isend, values[: 4 + (number == 99)], 0)
    torch.cuda.synchronize()  # has sent too much
    meet(None)
elif way == "exits":
    os._exit(0)
elif way == "receive":
    dist.recv(values, 0)
    torch.cuda.synchronize()  # has sent nothing
elif way == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif way == "launcher":  # all of them get nobody's word
    os.kill(os.getppid(), signal.SIGKILL)
    meet(None)
elif way == "memory":
    torch.empty(30 << 30, device="cuda")  # more than the card has
elif way == "raises":
    raise RuntimeError("a mistake of one rank")  # nobody catches it
elif way == "slowly":

    def last_words():
        dist.distributed_c10d._abort_process_group()
        signal.pause()  # until the launcher, which sees another rank end first, ends this one

    atexit.register(last_words)
    raise RuntimeError("a mistake of one rank")  # and is long in ending
dist.destroy_process_group()
