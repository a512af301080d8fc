# SPDX-License-Identifier: Apache-2.0
"""What is known of this process. Data only; written by the parts of the hook, read by record.py.

Invariant: `armed` is true only in the process whose pid stands in `pid`.
"""

import os
import time


class State:
    """Everything that the hook learnt about one process."""

    def __init__(self):
        self.armed = False
        self.pid = os.getpid()
        self.started = time.monotonic()
        self.started_at = time.time()
        self.last_import = None  # monotonic time at which the last import before the first CUDA use began
        self.torch = None  # the module, once its import has succeeded
        self.cuda_initialized = False
        self.device_count = 0

        self.compiling = {}  # thread -> how deep; compiling.py
        self.steps = 0
        self.unit = None  # "optimizer", "loader", "forward"
        self.stopped = None  # "settled", "limit"
        self.trains = False  # an optimizer was made
        self.updates = 0  # of optimizers
        self.loader_seen = False  # a loop over a data loader
        self.fast_forward = None  # why training was cut short: "settled", "limit"; fast_forward.py
        self.shapes = set()  # signatures of inputs
        self.shapes_visible = False

        self.peaks = {}  # device index -> peaks.Device
        self.peak_unshown = False  # a peak grew since the last snapshot that shows it
        self.open_oom = None  # the last out-of-memory that no progress has followed
        self.pending_ooms = []  # all since the last progress
        self.handled = {}  # (file, line, function, did a library ask) -> [count, requested bytes]
        self.ooms_seen = 0
        self.oom_ended_process = False
        self.final_oom = None  # reported as the program's failure: never becomes handled
        self.result_lost = False  # final_oom was caught by PyTorch, whose result is broken since
        self.exception = None
        self.failed_at_ns = None  # when it began to fail: an uncaught exception, or an exit with another status than 0
        self.left_at = None  # the line that called sys.exit or os._exit
        self.fast_forward_failed = None  # one line: the program failed because its loops were shortened

        self.reads = {}  # ((file, line), what) -> reads.Assumption
        self.read_sites = {}  # (file, line) of the program -> how often it read
        self.read_count = 0
        self.connected = False  # it asked for a connection to the network
        self.passes = 0  # batches handed out and top-level passes begun: something goes on
        self.reads_lost = 0
        self.saved = False  # torch has written a file
        self.reads_saved = 0  # for a file: what is in it nobody has looked at
        self.init_tensors = 0
        self.init_bytes = 0
        self.kept = None  # retainers.py: {"name", "bytes", "tensors", "at"}
        self.usage = {}  # (what, file, line, function) -> [count, bytes]
        self.snapshot = None
        self.peak_snapshot = None  # files in the run's folder
        self.oom_snapshot = None
        self.phase = None  # phases.py
        self.named = None  # the region that was named, regions.py
        self.cell = None  # the name of the notebook's cell that is being run
        self.turns_over = None  # why counting loops of the cell end early (cell_loops.py): "settled", "limit"
        self.turns_left_out = False  # one did
        self.cells = []  # left.py: a row for each that was run
        self.not_reached = []  # cells.py: sentences
        self.left_by_trainings = {}  # trainings.py: (kind, name) -> row
        self.holders = {}  # cell_holders.py: (kind, name) -> row
        self.regions = {}  # phase or named region -> where it was entered first
        self.complete_passes = 0  # steps and passes of every kind
        self.request = 0  # the number of the one that is being answered, or was last
        self.backwards = 0  # backward passes that have begun
        self.in_backward = 0  # backward passes that have begun and not ended
        self.input = None  # inputs.py: of the last call, beside the largest before it
        self.batch_size = None
        self.hook_error = None
        self.lost = {}  # sensor (guard.py) -> its error, one line
        self.attached = set()  # sensors
        self.absent = set()  # sensors that this torch has no place for
        self.missing = {}  # sensor -> what is lost since this torch lacks a place of its (points.py)
        self.rank = _integer(os.environ.get("RANK"))


class Settings:
    """The supervisor's wishes, from the environment (doc/design/0002-run-protocol.md)."""

    def __init__(self, environ):
        self.run = environ.get("TONNAGE_RUN", "")
        self.library = environ.get("TONNAGE_LIB", "")
        self.gpu = environ.get("TONNAGE_GPU", "virtual")
        self.init = environ.get("TONNAGE_INIT", "skip")
        self.some_ranks = bool(environ.get("TONNAGE_RANKS"))  # not all of the job are run
        self.assumptions = environ.get("TONNAGE_ASSUMPTIONS", "")
        self.snapshot = environ.get("TONNAGE_SNAPSHOT", "")
        self.detail = environ.get("TONNAGE_DETAIL", "1") != "0"
        self.followed = environ.get("TONNAGE_FOLLOWED") == "1"  # another command is run on what this one leaves
        outside = self.gpu != "virtual" or "allow" in (environ.get("TONNAGE_WRITES"), environ.get("TONNAGE_NETWORK"))
        self.ends_in_full = outside or self.followed  # somebody sees what it does last
        self.requests = environ.get("TONNAGE_REQUESTS") == "1"  # steps are requests
        self.program = _integer(environ.get("TONNAGE_PROGRAM"))  # of several that run at the same time, from 1 on
        self.trial = environ.get("TONNAGE_TRIAL") == "1"
        news = environ.get("TONNAGE_LAST_NEWS", "") if self.trial else ""
        step, _, epoch = news.partition(",")
        self.news_waits = news == "later"  # the ledger will tell
        self.news_step, self.news_epoch = _integer(step), _integer(epoch)  # of the unchanged program: settle.py, fast_forward.py
        self.tells_early = environ.get("TONNAGE_EARLY") == "1"  # before the wait for something new is over
        self.patient = environ.get("TONNAGE_PATIENT") == "1"  # what the program's text says of later rounds may take all the time
        self.modules = environ.get("TONNAGE_MODULES") == "1"
        self.host_memory = bool(environ.get("TONNAGE_HOST_MEMORY"))  # somebody asks what the computer's memory holds
        self.inputs = environ.get("TONNAGE_INPUTS", "as_is")  # "longest"; "pad=N" is in pad_to
        self.pad_to = _integer(self.inputs[4:]) if self.inputs.startswith("pad=") else None
        self.seconds = _number(environ.get("TONNAGE_SECONDS"), 120.0)
        wish = environ.get("TONNAGE_STEPS", "auto")
        self.updates_only = wish.endswith(" updates")  # without one, passes settle as ever
        self.history = self.detail or bool(self.snapshot)  # somebody will read PyTorch's memory history
        self.step_limit = _integer(wish.partition(" ")[0])  # None: auto or all
        self.watch_settling = wish not in ("all",) and (self.step_limit is None or self.updates_only)


def _integer(text):
    try:
        return int(text)
    except (TypeError, ValueError):
        return None


def _number(text, default):
    try:
        return float(text)
    except (TypeError, ValueError):
        return default


_OUTLIVES_A_FORK = ("torch", "last_import", "lost", "attached", "absent", "missing", "trains", "updates", "loader_seen",
                     "fast_forward", "peak_unshown")

state = State()
settings = Settings(os.environ)


def renew():
    """A forked child knows nothing of its own yet. The object stays, since other modules hold it."""
    keep = {name: getattr(state, name) for name in _OUTLIVES_A_FORK}
    state.__init__()
    state.__dict__.update(keep)
