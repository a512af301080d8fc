# SPDX-License-Identifier: Apache-2.0
"""In a rank of a job of which not all ranks are run (doc/design/0031-absent-ranks.md): the others are taken to do what the next one below
them that is run does.

NCCL's part is the virtual NCCL's; it learns here which ranks of the job a process group is of. Stores are not waited for by absent
ranks. gloo connects the ranks that are run; what torch.distributed asks of it is answered here, with as many answers as the group has ranks.
What a rank that is not run alone could say ends the call with one line.
"""

import functools
import hashlib
import io
import os
import pickle
import sys
import time

from . import virtual
from .state import settings

_IDS = 4  # communicators that a process group may make of one kind
_ID_BYTES = 128
_PATIENCE = 300  # seconds for what a representative says


def _read(text):
    numbers = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(numbers)


_ranks = _read(os.environ.get("TONNAGE_RANKS", "")) if settings.gpu == "virtual" else ()
_groups = {}  # process group -> _Group


def ranks():
    """The ranks of the job that are run; none where all are."""
    return _ranks


def check_job(nodes, local):
    """Ends the launcher where the job is another one than was said."""
    said, each = int(os.environ["TONNAGE_NODES"]), int(os.environ["TONNAGE_GPUS"])
    wrong = None
    if nodes != said:
        wrong = "the launcher starts a job of %d nodes: run it with --nodes %d" % (nodes, nodes)
    elif nodes > 1 and local != each:
        wrong = "the launcher starts %d ranks on each node: run it with --gpus %d" % (local, local)
    elif _ranks[-1] >= nodes * local:
        wrong = "--ranks names rank %d of a job of %d" % (_ranks[-1], nodes * local)
    if wrong:
        sys.stderr.write("tonnage: %s\n" % wrong)
        sys.stderr.flush()
        os._exit(2)


class _Group:
    """A process group: `members` are ranks of the job, `run` the places in it of those that are run."""

    __slots__ = ("members", "run", "small", "store", "counts")

    def __init__(self, members, store):
        self.counts = {}  # objects sent, and received of absent ranks
        self.members = members
        self.run = [place for place, rank in enumerate(members) if rank in _ranks]
        self.small = None  # gloo's, of those that are run
        self.store = store

    def whole(self):
        return len(self.run) == len(self.members)

    def slot(self, place):
        """The place among those that are run of the one that speaks for a place of the group."""
        below = [slot for slot, other in enumerate(self.run) if other <= place]
        return below[-1] if below else 0

    def is_absent(self, place):
        return place not in self.run

    def _next(self, *key):
        number = self.counts[key] = self.counts.get(key, 0) + 1
        return number

    def leave(self, own, place, items):
        """Leaves objects that go to a place, for ranks which are sent the same by one like this."""
        far = (place - own) % len(self.members)
        self.store.set("objects:%d:%d:%d" % (own, far, self._next("to", place)), pickle.dumps(items))

    def left(self, own, place):
        """What one that is not run sends here next; None where that cannot be known."""
        slot = self.slot(place)
        if self.run[slot] == own:  # it has not come there yet: the next one above says it before
            slot += 1
        if slot == len(self.run):
            return None
        speaker, far = self.run[slot], (own - place) % len(self.members)
        name = "objects:%d:%d:%d" % (speaker, far, self._next("from", place))
        until = time.monotonic() + _PATIENCE
        while not self.store.check([name]):
            if time.monotonic() >= until:
                return None
            time.sleep(0.01)
        return pickle.loads(self.store.get(name))


def _listed(members):
    """[0, 1, 2, 8] → "0-2,8"."""
    parts, first = [], 0
    for index, rank in enumerate(members):
        if index + 1 == len(members) or members[index + 1] != rank + 1:
            parts.append(str(rank) if index == first else "%d-%d" % (members[first], rank))
            first = index + 1
    return ",".join(parts)


def _made_up_id(*words):
    digest = hashlib.sha256(repr(words).encode()).digest()
    return digest + bytes(_ID_BYTES - len(digest))


# ---- stores and groups ----


def watch_store(owner, name):
    """Attaches to the store that ranks meet in: it waits for none of them."""
    if not _ranks:
        return
    original = getattr(owner, name)

    @functools.wraps(original, updated=())
    def store(*args, **kwargs):
        kwargs["wait_for_workers"] = False
        return original(*args, **kwargs)

    setattr(owner, name, store)


def watch_groups(module, name):
    """Attaches to the function that makes every process group."""
    if not _ranks:
        return
    original = getattr(module, name)
    _watch_gloo(module)
    _watch_calls(module)

    @functools.wraps(original)
    def helper(group_size, group_rank, global_ranks_in_group, backend, store, group_name, backend_options=None, **kwargs):
        members = sorted(global_ranks_in_group) or list(range(group_size))
        own = group_rank if not global_ranks_in_group else module.get_rank()
        if not global_ranks_in_group:
            _be(own, group_size)
        group = _Group(members, module.PrefixStore("cuda/", module.PrefixStore("%s/" % group_name, store)))
        if own in members and not group.whole():
            os.environ["TORCH_NCCL_RANKS_PER_ROOT"] = "1000000"  # one id a communicator, whatever its size
            backend_options = _options(module, backend, backend_options, members)
            if group.run[0] != 0 and members[group.run[0]] == own:
                for number in range(_IDS):
                    group.store.set(str(number), _made_up_id(group_name, number))
        elif own in members:
            backend_options = _options(module, backend, backend_options, members)
        _making.append(group)
        try:
            made = original(group_size, group_rank, global_ranks_in_group, backend, store, group_name,
                            backend_options=backend_options, **kwargs)
        finally:
            _making.pop()
        _groups[made[0]] = group
        return made

    setattr(module, name, helper)


_making = []  # the group that is being made


def _options(module, backend, given, members):
    """The options of a process group of NCCL, with its members where a configuration names the network."""
    if "nccl" not in str(module.BackendConfig(module.Backend(str(backend)))).lower():
        return given
    options = module.ProcessGroupNCCL.Options()
    options.is_high_priority_stream = getattr(given, "is_high_priority_stream", False)
    if given is not None:
        for field in ("blocking", "cga_cluster_size", "min_ctas", "max_ctas", "split_share"):
            setattr(options.config, field, getattr(given.config, field))
        options._timeout = given._timeout
    options.config.net_name = "tonnage:" + _listed(members)
    return options


def _watch_gloo(module):
    original = getattr(module, "ProcessGroupGloo", None)
    if original is None:
        return

    class ProcessGroupGloo(original):
        """gloo of the ranks that are run."""

        def __init__(self, store, rank, size, *args, **kwargs):
            group = _making[-1] if _making else None
            if group is None or group.whole():
                super().__init__(store, rank, size, *args, **kwargs)
                return
            place, size = group.run.index(rank), len(group.run)
            super().__init__(store, place, size, *args, **kwargs)
            group.small = module.ProcessGroup(store, place, size)
            group.small._set_default_backend(module.ProcessGroup.BackendType.GLOO)
            group.small._register_backend(module.torch.device("cpu"), module.ProcessGroup.BackendType.GLOO, self)

    module.ProcessGroupGloo = ProcessGroupGloo


def watch_plans(module, name):
    """Attaches to the check that no two ranks save the same part of a tensor: absent ones say what others say."""
    if _ranks:
        setattr(module, name, lambda *args, **kwargs: True)


# ---- calls ----


def _watch_calls(module):
    for name, make in _CALLS.items():
        original = getattr(module, name, None)
        if original is None:
            continue
        made = make(module, original)
        owners = [other for title, other in sys.modules.items() if title.startswith("torch.distributed")]
        for owner in owners:  # some have bound it already
            if getattr(owner, "__dict__", {}).get(name) is original:
                setattr(owner, name, made)


def _found(module, group):
    """The process group of a call, and what is known of it; None where all of its ranks are run."""
    process_group = group if group is not None else module._get_default_group()
    known = _groups.get(process_group)
    return None if known is None or known.whole() else known


def _place(known, rank, group_rank):
    """A place in the group, from a rank of the job or of the group."""
    if group_rank is not None:
        return group_rank
    return known.members.index(rank) if rank in known.members else -1


def _refuse(call, known, place):
    rank = known.members[place]
    words = "%s: rank %d is not run, and nobody can say what it would send: add it to --ranks" % (call, rank)
    sys.stderr.write("tonnage: %s\n" % words)
    sys.stderr.flush()
    count = virtual.function("tn_vgpu_refused", None, virtual.TEXT, virtual.TEXT)
    if count is not None:
        count(b"torch.distributed", call.encode())
    raise RuntimeError(words)


def _over(module, async_op):
    """What an asynchronous call returns when it is over."""
    if not async_op:
        return None
    future = module.torch.futures.Future()
    future.set_result(None)
    return module.torch._C._distributed_c10d._create_work_from_future(future)


def _gathered(module, known, tensor):
    """What each rank that is run has."""
    outputs = [module.torch.empty_like(tensor) for _ in known.run]
    known.small.allgather([outputs], [tensor.contiguous()]).wait()
    return outputs


def _by_gloo(known, tensor):
    return known is not None and known.small is not None and tensor.device.type == "cpu"


def _all_gather(module, original):
    @functools.wraps(original)
    def all_gather(tensor_list, tensor, group=None, async_op=False):
        known = _found(module, group)
        if not _by_gloo(known, tensor):
            return original(tensor_list, tensor, group, async_op)
        outputs = _gathered(module, known, tensor)
        for place, output in enumerate(tensor_list):
            output.copy_(outputs[known.slot(place)])
        return _over(module, async_op)

    return all_gather


def _all_gather_into(module, original):
    @functools.wraps(original)
    def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
        known = _found(module, group)
        if not _by_gloo(known, input_tensor):
            return original(output_tensor, input_tensor, group, async_op)
        outputs = _gathered(module, known, input_tensor)
        parts = output_tensor.view(len(known.members), *input_tensor.shape)
        for place in range(len(known.members)):
            parts[place].copy_(outputs[known.slot(place)])
        return _over(module, async_op)

    return all_gather_into_tensor


def _reduced(module, known, tensor, op):
    """A sum counts each rank of the group; the least, the greatest and the like are those of the ranks that are run."""
    kind = module.ReduceOp
    if op not in (kind.SUM, kind.AVG):
        options = module.AllreduceOptions()
        options.reduceOp = op
        known.small.allreduce([tensor], options).wait()
        return
    outputs = _gathered(module, known, tensor)
    counts = [0] * len(outputs)
    for place in range(len(known.members)):
        counts[known.slot(place)] += 1
    result = sum(output * count for output, count in zip(outputs, counts))
    tensor.copy_(result if op == kind.SUM else result / len(known.members))


def _all_reduce(module, original):
    @functools.wraps(original)
    def all_reduce(tensor, op=module.ReduceOp.SUM, group=None, async_op=False):
        known = _found(module, group)
        if not _by_gloo(known, tensor):
            return original(tensor, op, group, async_op)
        _reduced(module, known, tensor, op)
        return _over(module, async_op)

    return all_reduce


def _reduce(module, original):
    @functools.wraps(original)
    def reduce(tensor, dst=None, op=module.ReduceOp.SUM, group=None, async_op=False, group_dst=None):
        known = _found(module, group)
        if not _by_gloo(known, tensor):
            return original(tensor, dst, op, group, async_op, group_dst)
        result = tensor.clone()
        _reduced(module, known, result, op)
        if known.members[_place(known, dst, group_dst)] == module.get_rank():
            tensor.copy_(result)
        return _over(module, async_op)

    return reduce


def _broadcast(module, original):
    @functools.wraps(original)
    def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
        known = _found(module, group)
        if not _by_gloo(known, tensor):
            return original(tensor, src, group, async_op, group_src)
        place = _place(known, 0 if src is None else src, group_src)
        if known.is_absent(place):
            _refuse("broadcast", known, place)
        options = module.BroadcastOptions()
        options.rootRank = known.slot(place)
        known.small.broadcast([tensor], options).wait()
        return _over(module, async_op)

    return broadcast


def _gather(module, original):
    @functools.wraps(original)
    def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
        known = _found(module, group)
        if not _by_gloo(known, tensor):
            return original(tensor, gather_list, dst, group, async_op, group_dst)
        outputs = _gathered(module, known, tensor)
        for place, output in enumerate(gather_list or ()):
            output.copy_(outputs[known.slot(place)])
        return _over(module, async_op)

    return gather


def _scatter(module, original):
    @functools.wraps(original)
    def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
        known = _found(module, group)
        if not _by_gloo(known, tensor):
            return original(tensor, scatter_list, src, group, async_op, group_src)
        place = _place(known, 0 if src is None else src, group_src)
        if known.is_absent(place):
            _refuse("scatter", known, place)
        options = module.ScatterOptions()
        options.rootRank = known.slot(place)
        parts = [[scatter_list[other] for other in known.run]] if scatter_list else []
        known.small.scatter([tensor], parts, options).wait()
        return _over(module, async_op)

    return scatter


def _with_peer(module, original, sends, name):
    """A send to a rank, or a receive from one, that is not batched."""

    @functools.wraps(original)
    def call(tensor, *args, **kwargs):
        group = kwargs.get("group", args[1] if len(args) > 1 else None)
        known = _found(module, group)
        if known is None:
            return original(tensor, *args, **kwargs)
        peer = args[0] if args else kwargs.get("dst" if sends else "src")
        place = _place(known, peer, kwargs.get("group_dst" if sends else "group_src"))
        if _by_gloo(known, tensor):
            if known.is_absent(place):
                return _over(module, True) if sends else _refuse(name, known, place)
            tag = kwargs.get("tag", args[2] if len(args) > 2 else 0)
            work = (known.small.send if sends else known.small.recv)([tensor], known.slot(place), tag)
            if name in ("isend", "irecv"):
                return work
            work.wait()
            return place if not sends else None
        absent = place >= 0 and known.is_absent(place)
        if absent:
            own = known.members.index(module.get_rank())
            if own > place:
                key = "%d:%d" % (place, own)
                known.store.set(key, _made_up_id(known.members, key))
        _say_peer(absent)
        try:
            return original(tensor, *args, **kwargs)
        finally:
            _say_peer(False)

    return call


def _split(module, original):
    """Parts of a group are made as new groups are: NCCL does not learn the members of a part otherwise."""

    @functools.wraps(original)
    def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
        parent = parent_pg or module._get_default_group()
        known = _groups[parent]
        own = known.members.index(module.get_rank())
        for part in split_ranks:
            if own in part:
                members = [known.members[place] for place in sorted(part)]
                return module.new_group(members, timeout=timeout, backend=backend or module._world.pg_map[parent][0], pg_options=pg_options,
                                        use_local_synchronization=True, group_desc=group_desc)
        return None

    return split_group


def _say_peer(absent):
    say = virtual.function("tn_vgpu_next_peer_absent", None, virtual.NUMBER)
    if say is not None:
        say(int(absent))


def _of_objects(name, position):
    """A call that brings objects from one rank: whether it is run is seen before it waits."""

    def make(module, original):
        @functools.wraps(original)
        def call(*args, **kwargs):
            known = _found(module, kwargs.get("group"))
            if known is not None:
                src = args[position] if len(args) > position else kwargs.get("src")
                place = _place(known, 0 if src is None else src, kwargs.get("group_src"))
                if place >= 0 and known.is_absent(place):
                    _refuse(name, known, place)
            return original(*args, **kwargs)

        return call

    return make


# ---- objects from one rank to another ----
#
# A rank that is not run sends what its representative sends, to the rank that is as far from it. Each sender leaves what it says in the
# group's store, by how far its receiver is and how many it has sent there.


def _send_objects(module, original):
    @functools.wraps(original)
    def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, *args, **kwargs):
        known = _found(module, group)
        if known is not None:
            own = known.members.index(module.get_rank())
            known.leave(own, _place(known, dst, group_dst), [_bytes_of(module, item, group) for item in object_list])
        return original(object_list, dst, group, device, group_dst, *args, **kwargs)

    return send_object_list


def _receive_objects(module, original):
    @functools.wraps(original)
    def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, *args, **kwargs):
        known = _found(module, group)
        place = -1 if known is None or (src is None and group_src is None) else _place(known, src, group_src)
        if place < 0 or not known.is_absent(place):
            return original(object_list, src, group, device, group_src, *args, **kwargs)
        said = known.left(known.members.index(module.get_rank()), place)
        if said is None:
            _refuse("recv_object_list", known, place)
        _receive_as_told(module, said, place, group, device or module._get_object_coll_device(group), *args, **kwargs)
        for index, item in enumerate(said):
            object_list[index] = module._unpickler(io.BytesIO(item)).load()
        return known.members[place]

    return recv_object_list


def _bytes_of(module, item, group):
    file = io.BytesIO()
    module._pickler(file).dump(item)
    return file.getvalue()


def _receive_as_told(module, said, place, group, device, use_batch=False):
    """What receiving costs on a card: two tensors, and two calls."""
    if device.type == "cpu":
        return
    torch = module.torch
    for tensor in (torch.empty(len(said), dtype=torch.long, device=device), torch.empty(sum(map(len, said)), dtype=torch.uint8, device=device)):
        if use_batch:
            module.batch_isend_irecv([module.P2POp(module.irecv, tensor, group_peer=place, group=group)]).pop().wait()
        else:
            module.recv(tensor, group=group, group_src=place)


_CALLS = {
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into,
    "all_gather_single": _all_gather_into,
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "gather": _gather,
    "scatter": _scatter,
    "split_group": _split,
    "send": lambda module, original: _with_peer(module, original, True, "send"),
    "isend": lambda module, original: _with_peer(module, original, True, "isend"),
    "recv": lambda module, original: _with_peer(module, original, False, "recv"),
    "irecv": lambda module, original: _with_peer(module, original, False, "irecv"),
    "broadcast_object_list": _of_objects("broadcast_object_list", 1),
    "scatter_object_list": _of_objects("scatter_object_list", 2),
    "send_object_list": _send_objects,
    "recv_object_list": _receive_objects,
}


# ---- ranks that are not run ----


def park(rank):
    """This process is a rank that is not run: it becomes a small one that ends as the one that stands for it does."""
    below = [other for other in _ranks if other < rank]
    program = os.path.join(settings.library, "bin", "tonnage-parked")
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONPATH")}
    os.execve(program, [program, settings.run, str(below[-1] if below else _ranks[0])], environment)


def look():
    """At the start of a process: a launcher has said which rank it is."""
    rank = os.environ.get("RANK", "")
    if _ranks and rank.isdigit():
        _be(int(rank), os.environ.get("WORLD_SIZE", ""))


def _be(rank, world):
    """This process is a rank: of one that is not run nothing is left; one that is leaves its number for those that wait for it."""
    if rank not in _ranks:
        park(rank)
    os.environ["TONNAGE_RANK"], os.environ["TONNAGE_WORLD"] = str(rank), str(world)
    try:
        with open(os.path.join(settings.run, "rank-%d" % rank), "x") as file:
            file.write(str(os.getpid()))
    except OSError:
        pass  # another process of the same rank came first
