"""A forked worker that never touches CUDA, while the parent holds a gigabyte: it must not be counted twice."""
import multiprocessing
import os

import torch

held = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")


def child(queue):
    queue.put(os.getpid())


context = multiprocessing.get_context("fork")
queue = context.Queue()
worker = context.Process(target=child, args=(queue,))
before = torch.cuda.mem_get_info()[0]
worker.start()
queue.get()
worker.join()
assert worker.exitcode == 0
assert torch.cuda.mem_get_info()[0] == before
print("free is still", before)
