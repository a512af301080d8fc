# SPDX-License-Identifier: Apache-2.0
"""What happens in the program, between those who see it and those who write it down. Imports nothing of this package.

    sensors    publish: each watches one place of torch
    recorders  subscribe: each keeps what it is there for
    policy     decides by what the recorders know: what a step is, when all has been seen, what ends early

boot.py alone subscribes: the order of its lines is the order of the calls, so a recorder stands above who reads it. A
subscriber never raises (guard.py). What several of them add to, or answer, travels as an object: Batch, Step.
"""


class Event:
    """One kind of thing that happens. Calling it tells all subscribers."""

    __slots__ = ("subscribers",)

    def __init__(self):
        self.subscribers = []

    def subscribe(self, *functions):
        """Calls these from now on, after those that are there."""
        self.subscribers.extend(functions)

    def __call__(self, *args):
        for subscriber in self.subscribers:
            subscriber(*args)


class Batch:
    """A batch that a loader has fetched and not handed out yet."""

    __slots__ = ("iterator", "first", "frame", "data", "phase_before", "new_shape", "ends")

    def __init__(self, iterator, first, frame, data, phase_before):
        self.iterator = iterator
        self.first = first  # of its epoch
        self.frame = frame  # torch's, that hands it out
        self.data = data
        self.phase_before = phase_before
        self.new_shape = False  # its shapes were not met before
        self.ends = False  # the epoch ends instead


class Step:
    """A step that is over."""

    __slots__ = ("number", "unit", "may_stop", "grew", "new_input")

    def __init__(self, number, unit, may_stop):
        self.number = number
        self.unit = unit  # "optimizer", "loader", "forward"
        self.may_stop = may_stop  # False in the middle of something that still grows
        self.grew = False  # a peak of PyTorch's allocator grew in it
        self.new_input = False  # it brought a shape or a volume that was not met before


call_began = Event()  # (module or None for a compiled function, args, kwargs, frame): a call from outside
call_made = Event()  # (module, what it returned, frame): a module's call from outside has returned
call_ended = Event()  # (args, kwargs, frame): it has returned; not when it raised

optimizer_made = Event()  # (optimizer): its class's constructor runs
optimizer_ready = Event()  # (optimizer): torch has wrapped its step()
update_began = Event()  # (optimizer, frame)
update_ended = Event()  # (optimizer, frame)

backward_began = Event()  # (frame): not one inside another; once CUDA is in use, as the next two
graph_in_use = Event()  # (tensors or gradient edges that a backward pass starts from, does it create a graph itself): every one
backward_ended = Event()  # (): the outermost is over
checkpoint_met = Event()  # (): a part of the model is computed again in the backward pass
saved_tensors_packed = Event()  # (): hooks of the program pack what autograd saves

batch_fetched = Event()  # (Batch): any batch of any loader
indices_wanted = Event()  # (iterator): a loader's iterator is about to take the next batch of indices from its sampler
indices_taken = Event()  # (iterator, indices): it has
batch_begins = Event()  # (Batch): CUDA is in use, so what follows is the program's work on this batch

file_opened = Event()  # ("save" or "load", frame): torch writes or reads a file

went_on = Event()  # (unit): the program did something whole after which an earlier out-of-memory was handled
counting_began = Event()  # (): steps are counted from 1 again
training_began = Event()  # (): an optimizer was made; what was counted before were trials
step_ended = Event()  # (Step), once CUDA is in use

cell_began = Event()  # (Cell): a notebook's, that IPython runs
cell_ended = Event()  # (Cell, its exception or None)

window_ends = Event()  # (): PyTorch's history is about to be emptied
snapshot_begins = Event()  # (): PyTorch's snapshot is about to be taken: say what is what
out_of_memory_snapshot_begins = Event()  # (): the same, for one of an out-of-memory outside of a backward pass
memory_piles_up = Event()  # (frame): it grows for certain, or ran out; what keeps tensors is looked for from this frame on
waited = Event()  # (seconds): so long the hook has kept the program waiting
