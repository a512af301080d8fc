# SPDX-License-Identifier: Apache-2.0
"""The guest hook of Tonnage, inside the user's process. Standard library only.

    boot      starts it; the environment; forks
    guard     no error of ours reaches the program: the first one disarms the hook
    imports   calls us once a watched module has been imported
    state     what is known of this process; data only
    torchapi  every private name of torch that we use, each guarded, by version
    frames    whose code a frame is, the user's place, stacks
    ledger    the words in shared memory
    record    guest/<pid>.json
    peaks     the allocator's peaks, kept over resets by the program
    history   memory history by step, snapshots
    marks     what a snapshot cannot know, written into it
    phases    what the program is doing: build, forward, backward, optimizer, evaluation, ...
    holds     what tensors are: parameters, gradients, optimizer state
    gathered  parameters that are gathered for a while
    inputs    which tensors are inputs
    habits    calls that say more: zero_grad, empty_cache, pin_memory, deleted modules, warnings
    graph     autograd's graph as a backward pass begins
    notes     what only the virtual GPU sees: workspaces of libraries
    virtual   the virtual GPU of this process, by ctypes
    oom       the out-of-memory observer
    steps     what a step is, and counting it
    shapes    shapes of inputs, where they can be seen for nothing
    settle    when training has been seen, and asking the supervisor to stop
    rehearse  ends the epochs of data loaders early, so that the rest of the program is seen
    consumers whether the end of a loader would end a loop and nothing else, from byte code
    trainers  trainers that count the batches themselves
    growth    memory that grows with every step
    keepers   what keeps tensors that pile up: a list of the program, and the line that adds to it
    reads     values that a kernel would have computed, read back
    ranks     this process among the ranks of a job
    generation  ends a generation at its greatest length
    init      large random initialisation on the CPU, skipped
    pages     which pages of a tensor were ever touched
    methods   replaces methods of torch.Tensor without a frame of ours in tracebacks
    uploads   what would be sent to a hub is not sent
    trackers  trackers stay offline, what would be put into stores elsewhere is not put there
    downloads what the network wall did not let a program fetch
    held      counts all three
    ending    how the process ends

Rule for all of them: what a program can see stays as it is, tracebacks included, unless a module's head says otherwise.
"""
