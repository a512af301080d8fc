"""One tensor of 256 MiB, held by two processes: what stands on the card at each moment, in MiB against the first.

`shared_tensor.py free` lets go in the receiver first, `kill` ends the receiver by SIGKILL while it holds the tensor.
"""

import gc
import os
import signal
import sys

import torch
import torch.multiprocessing as mp


def receive(tensors, answers):
    tensor, event = tensors.get()
    torch.cuda.current_stream().wait_event(event)
    assert tensor.shape == (1 << 26,) and tensor.is_cuda and event.query()
    answers.put("open")
    tensors.get()
    del tensor
    gc.collect()
    torch.cuda.ipc_collect()
    answers.put("closed")
    tensors.get()


def held():
    free, total = torch.cuda.mem_get_info()
    return total - free >> 20


def main(end):
    mp.set_start_method("spawn")
    tensors, answers = mp.Queue(), mp.Queue()
    child = mp.Process(target=receive, args=(tensors, answers))
    child.start()
    shared = torch.ones(1 << 26, device="cuda")
    context = held() - (torch.cuda.memory_reserved() >> 20)
    event = torch.cuda.Event(enable_timing=False, interprocess=True)
    event.record()
    tensors.put((shared, event))
    assert answers.get() == "open"
    print("open", held() - 2 * context)
    if end == "kill":
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        print("killed", held() - context)
        return
    tensors.put("close")
    assert answers.get() == "closed"
    print("closed", held() - 2 * context)
    del shared
    torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    print("freed", held() - 2 * context)
    tensors.put("end")
    child.join()


if __name__ == "__main__":
    main(sys.argv[1])
