# SPDX-License-Identifier: Apache-2.0
"""The guest hook of Tonnage, inside the user's process. Standard library only.

    sensors ──► events ──► recorders ──► policy

boot starts it and says who hears of what; points is the table of the places of torch that are changed. tools/check_rooms.py checks that each layer sees only those before it.

The ground
    guard     no error of ours reaches the program: the first one of a sensor switches it off
    events    what happens in the program: sensors publish, recorders subscribe
    imports   calls us once a watched module has been imported
    methods   replaces methods of torch without a frame of ours in tracebacks
    recode    puts calls of ours between torch's own statements
    state     what is known of this process; data only
    torchapi  private names of torch that are asked, each guarded, by version
    origin    whose code a file is
    frames    the user's place on a stack, stacks
    cellnames the cell of a notebook behind a name that IPython gave its code
    generated the program's line behind code that Inductor has written
    ledger    the words in shared memory
    record    writes guest/<pid>.json
    metadata     what a snapshot cannot know, written into it
    memory_log what only the virtual GPU sees: workspaces of libraries
    virtual   the virtual GPU of this process, by ctypes
    weights   memory that stands in for weights which are not there
    pages     which pages of a tensor were ever touched
    data_notes  what stood in for data
    image_sizes how large an image is, by its first bytes
    held      counts what was held back
    references  weak references to tensors, which do not stand in the way
    forks     a fork server for trials

Sensors, and what answers in torch's place
    calls       calls of modules and compiled functions from outside
    optimizers  optimizers as they are made and as they update
    loaders     batches of data loaders
    backward    backward passes, and hooks on what autograd saves
    cells       cells of notebooks, as IPython runs them
    compiling   while the program compiles
    uncompiled  while it does not: torch's compiler is not imported for nothing
    launching   a launcher starts the ranks that are run, and waits for no other node
    absent      ranks that are not run: stores, groups and calls do without them
    init        large random initialisation on the CPU, skipped
    predicates  checks of weights that are not there
    generation  ends a generation at its greatest length
    values      answers that do not depend on what kernels compute
    files       files that are written past the C library
    uploads     what would be sent to a hub is not sent
    trackers    trackers stay offline, what would be put into stores elsewhere is not put there
    downloads   what the network wall did not let a program fetch
    fetched     models that `tonnage fetch` has fetched are found
    made_data   images that are not decoded, and data that is not there
    made_sets   data sets of torchvision that are not there
    made_tables tables of `datasets` whose values are not there
    four_bits   settings that bitsandbytes keeps in tensors, where only headers are there

Recorders
    peaks     the allocator's peaks, kept over resets by the program
    history   memory history by step, snapshots
    phases    what the program is doing: build, forward, backward, optimizer, evaluation, ...
    holds     what tensors are: parameters, gradients, optimizer state
    copies    which parameters are those of a second copy of a model
    gathered  parameters that are gathered for a while
    zero      what DeepSpeed's ZeRO holds
    graph     autograd's graph as a backward pass begins
    inputs    which tensors are inputs
    shapes    shapes of inputs, where they can be seen for nothing
    epochs    loops over data loaders, and their epochs
    later_rounds  what later rounds of a loop do that none has done, from its text
    growth    memory that grows by the same amount each time
    facts     what the program does about its memory already
    usage    calls that say more: zero_grad, empty_cache, pin_memory, deleted modules, warnings
    retainers what keeps tensors that pile up: a list of the program, and the line that adds to it
    oom       the out-of-memory observer
    reads     values that a kernel would have computed, read back
    ranks     this process among the ranks of a job
    collectives  waits until a process group is at rest
    work      what each step put on the virtual GPU's streams
    left      what each cell of a notebook left behind
    cell_holders  what holds memory between cells
    let_go    how many bytes are free without something: measured in a forked child
    regions   parts of the program that somebody names, such as a test

Policy
    steps     what a step is, and counting it
    step_growth  whether memory grows with every step, and over epochs
    settle    when training has been seen, and asking the supervisor to stop
    fast_forward  ends the epochs of data loaders early, so that the rest of the program is seen
    consumers whether the end of a loader would end a loop and nothing else, from byte code
    trainers  trainers that count the batches themselves
    workers   loaders that do without worker processes: epochs of a batch or two, and workers that count together
    ending    how the process ends
    imported  which installed modules the program has imported
    document  the contents of guest/<pid>.json

Rule for all of them: what a program can see stays as it is, tracebacks included, unless a module's head says otherwise.
"""
