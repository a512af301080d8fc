# SPDX-License-Identifier: Apache-2.0
"""In a launcher of torch.distributed (torchrun, accelerate launch) of a job of which not all ranks are run: it starts those that are,
on whatever node they would be, and waits for no other node (doc/design/0031-absent-ranks.md).

This node's agent takes part in a rendezvous of one. What it then learns of its workers is written here: rank, local rank and node of
each one that is run.
"""

import functools

from . import absent


def watch_rendezvous(owner, name):
    """Attaches to the function that makes the rendezvous of a launcher's parameters."""
    if not absent.ranks():
        return
    original = getattr(owner, name)

    @functools.wraps(original)
    def rendezvous_of_one(params):
        job.nodes = params.max_nodes
        params.min_nodes = params.max_nodes = 1
        params.config["rank"] = 0
        port = params.endpoint.rpartition(":")[2]
        if params.endpoint and port.isdigit() and params.backend in ("static", "c10d"):
            params.endpoint = "localhost:" + port  # this node stands for the first one
            if params.backend == "c10d":
                params.config["is_host"] = True
        return original(params)

    setattr(owner, name, rendezvous_of_one)


class _Job:
    """What the launcher was told."""

    __slots__ = ("nodes", "local")

    def __init__(self):
        self.nodes = None
        self.local = None


job = _Job()


def watch_workers(agent, name):
    """Attaches to the agent's method that says which worker has which rank."""
    if not absent.ranks():
        return

    def assign(self, store, group_rank, group_world_size, spec):
        from torch.distributed.elastic.agent.server.api import Worker

        job.local = spec.local_world_size
        world = (job.nodes or 1) * job.local
        absent.check_job(job.nodes or 1, job.local)
        return [Worker(local_rank=slot, global_rank=rank, role_rank=rank, world_size=world, role_world_size=world)
                for slot, rank in enumerate(absent.ranks())]

    setattr(agent, name, assign)


def watch_processes(owner, name):
    """Attaches to the agent's function that starts its workers, with the environment of each."""
    if not absent.ranks():
        return
    original = getattr(owner, name)

    @functools.wraps(original)
    def start(*args, **kwargs):
        for environment in (kwargs.get("envs") or {}).values():
            rank = int(environment["RANK"])
            environment["LOCAL_RANK"] = str(rank % job.local)
            environment["GROUP_RANK"] = str(rank // job.local)
            environment["MASTER_ADDR"] = "localhost"
            environment["GROUP_WORLD_SIZE"] = str(job.nodes or 1)
        return original(*args, **kwargs)

    setattr(owner, name, start)
