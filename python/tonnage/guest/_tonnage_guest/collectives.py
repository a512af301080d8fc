# SPDX-License-Identifier: Apache-2.0
"""On a virtual GPU a process group of NCCL is at rest after each update.

The watchdog, a thread of PyTorch, looks ten times a second for collectives that are over on the card, and only then
are their tensors released (gradients of DistributedDataParallel, buckets that it makes anew in the second step). A
training step of a card takes that long, one here does not: peaks would depend on how busy this machine is. So the
step ends as if the program had asked for its loss: the card is waited for, and then the watchdog.
"""

import sys
import time

from . import guard
from .state import settings

_TWO_LOOKS = 0.25  # seconds


@guard.guarded
def went_on(unit):
    """An update was made."""
    if unit == "optimizer" and settings.gpu == "virtual":
        rest()


@guard.alone
def rest():
    """Waits for the card, and then for the watchdog."""
    torch = sys.modules["torch"]
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return
    if "nccl" not in torch.distributed.get_backend_config():
        return
    torch.cuda.synchronize()
    try:
        torch.distributed.distributed_c10d._get_default_group()._wait_for_pending_works()
    except RuntimeError:  # not for this kind of group (2.15's own NCCL; 2.6 where none was named)
        time.sleep(_TWO_LOOKS)
