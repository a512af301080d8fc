# SPDX-License-Identifier: Apache-2.0
"""Every change that can be tried, in one table.

A row says what the change is called, what must be there for it (a question about the survey's facts, survey.py),
what it promises of the program's results, what it cannot go together with, the values worth trying and how `tonnage fix`
chooses among them, what it costs in time, and the most that it may save. The module of the same name does it. The build
makes C's table of these rows (src/change/build_facts.py), so that both sides know the same.

    same                   the same arithmetic in the same order
    same_up_to_rounding    sums in another order, or computed again: differences of the last bits
    different_training     anything else: another batch, another optimizer, lower precision
"""

import collections

SAME = "same"
ROUNDING = "same_up_to_rounding"
DIFFERENT = "different_training"
ORDER = (SAME, ROUNDING, DIFFERENT)  # worst last

OPTION = "option_"  # begins the names of changes that are options of the program's own (meaning.py)

# How `tonnage fix` chooses among the values (src/search/fix_plan.c).
FIRST = "first"  # the first one
PIECES = "pieces"  # numbers of pieces of a batch: the fewest that should do, and the next
BATCH = "batch"  # none are listed: the largest half, quarter ... of the batch that should do, and the next
EVALUATION_BATCH = "evaluation_batch"  # the same of the batch of evaluation
SETTINGS = "settings"  # all where they should do, else the first
OPTION_VALUES = "option_values"  # words for the command line: the first two that should do

# cost: rank of the time that it costs a step, least first; two equal ones cost about the same.
# saves: the most that it may save of each, as a share: parameters, gradients, state, activations, temporaries, rounding.
# phases: it helps only where the peak is in one of these; none: in any.
Row = collections.namedtuple("Row", "id title needs results conflicts values cost saves phases choice", defaults=((), FIRST))


def _trains(facts):
    return facts["backward"] > 0


def _infers(facts):
    return facts["backward"] == 0 and facts["modules"] > 0


def _steps(facts):
    return _trains(facts) and bool(facts["optimizers"])


def _managed(facts):
    """A trainer makes the updates."""
    return _steps(facts) and facts["trainer"] is not None


def _batch(facts):
    """Not beside the program's own option, which is the same and a line to copy."""
    own = any(offer[0] == "option_batch" for offer in facts["offers"])
    return bool(facts["batches"] or facts["batch_options"]) and not own


def _evaluation_batch(facts):
    """Not beside the program's own option where it only infers, as _batch()."""
    own = _infers(facts) and any(offer[0] == "option_batch" for offer in facts["offers"])
    return any(batch > 1 for batch in facts["evaluation_batches"]) and not own


def _each_by_itself(facts):
    """What the program does with a sample does not hang on the batch that it comes in: loaders hand out batches to models in eval(), and
    an optimizer is made, so that it is an evaluation and draws nothing, as a generation may."""
    return _infers(facts) and not facts["calls_in_training_mode"] and bool(facts["evaluation_batches"])


def _accumulates(facts):
    made = any(batch and batch > 1 for batch in facts["batches"]) or "accumulate" in facts["rewrites"]
    return _steps(facts) and made and not facts["cuts_batches"]


def _blocks(facts):
    return _trains(facts) and facts["blocks"] > 1


def _written(name):
    """The change finds something to rewrite in the program's own files."""

    def needs(facts):
        return name in facts["rewrites"]

    return needs


def _updates(name):
    """The change finds something of an update to rewrite, and it was not seen that the program only infers."""

    def needs(facts):
        return name in facts["rewrites"] and not _infers(facts)

    return needs


def _acts(name):
    """The change finds something to rewrite, and the survey has seen values there that it concerns (keeps.py)."""

    def needs(facts):
        return name in facts["rewrites"] and facts["at_most"].get(name) != 0

    return needs


def _trains_again(name):
    """The change finds something to rewrite, and the program trains more than once."""

    def needs(facts):
        return facts["trainings"] > 1 and name in facts["rewrites"]

    return needs


def _sharded_by_ranks(facts):
    return facts["ranks"] > 1 and "shard_state" in facts["rewrites"]


def _loads(name):
    """A data loader holds some of the computer's memory so. Tried where that is what lacks (src/search/fix_plan.c)."""

    def needs(facts):
        return any(loader[name] for loader in facts["loaders"])

    return needs


def _offered(facts):
    """Rows of these come from what the program offers (possible)."""
    return False


def _any(*questions):
    return lambda facts: any(question(facts) for question in questions)


_ALLOCATOR = (
    "expandable_segments:True",
    "max_split_size_mb:64",
    "max_split_size_mb:256",
    "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:8",
    "max_split_size_mb:128,garbage_collection_threshold:0.8",
)

_MOST_WORKER_COUNTS = 5

ROWS = [
    Row("alloc", "settings of PyTorch's allocator", lambda facts: facts["cuda"], SAME, (), _ALLOCATOR, 0,
        {"rounding": 1}, choice=SETTINGS),
    Row("memory_fraction", "remove the program's own memory limit", _written("memory_fraction"), SAME, (), (None,), 0, {}),
    Row("zero_grad", "free gradients right after the update", _any(_updates("zero_grad"), _managed), SAME,
        ("step_in_backward",), (None,), 0, {"gradients": 1}),
    Row("no_grad", "evaluate under torch.no_grad()", _any(_written("no_grad"), lambda f: f["evaluation_with_graph"] > 0), SAME,
        (), (None,), 0, {"activations": 1}),
    Row("unused_graphs", "torch.no_grad() where no backward pass uses the result", lambda facts: bool(facts["unused_graphs"]), SAME,
        ("no_grad",), (), 0, {"activations": 1}),
    Row("detach", "detach what you keep across steps", _acts("detach"), SAME, (), (None,), 0,
        {"activations": 1, "temporaries": 1}),
    Row("outputs_to_host", "move outputs that you keep to the CPU", _acts("outputs_to_host"), SAME, (), (None,), 1,
        {"activations": 1, "temporaries": 1}),
    Row("eval_accumulation", "move evaluation outputs to the CPU batch by batch",
        lambda facts: facts["training_arguments"], SAME, (), (None,), 0, {"temporaries": 1}),
    Row("copies_to_host", "make copies of a state on the CPU", _written("copies_to_host"), SAME, (), (None,), 0,
        {"temporaries": 1}),
    Row("map_location", "load the checkpoint on the CPU", _written("map_location"), SAME, (), (None,), 0,
        {"temporaries": 1}),
    Row("release_checkpoint", "let the loaded checkpoint go", _written("release_checkpoint"), SAME, (), (None,), 0,
        {"temporaries": 1}),
    Row("release_holders", "delete what still holds a deleted model", _written("release_holders"), SAME, (), (None,), 0,
        {"parameters": 1, "state": 1, "temporaries": 1}),
    Row("release_trainings", "let go of what earlier trainings left", _trains_again("release_trainings"), SAME, (), (None,), 0,
        {"parameters": 1, "gradients": 1, "state": 1, "activations": 1, "temporaries": 1}),
    Row("unbind_trainings", "let go of the last training before the next begins", _trains_again("unbind_trainings"), SAME, (), (None,), 0,
        {"parameters": 1, "gradients": 1, "state": 1, "activations": 1, "temporaries": 1}),
    Row("collect_trainings", "collect garbage before each training", _trains_again("collect_trainings"), SAME, (), (None,), 1,
        {"parameters": 1, "gradients": 1, "state": 1, "activations": 1, "temporaries": 1}),
    Row("prune_remove", "make pruning permanent (no masks)", _written("prune_remove"), SAME, (), (None,), 0,
        {"parameters": 1, "temporaries": 1}),
    Row("evaluation_batch", "use smaller batches in evaluation", _evaluation_batch, ROUNDING, (), (), 1,
        {"activations": 1, "temporaries": 1, "rounding": 1}, phases=("evaluation",), choice=EVALUATION_BATCH),
    Row("release_outputs", "free outputs once the loss is computed", _acts("release_outputs"), SAME, (), (None,), 0,
        {"activations": 0.3, "temporaries": 1}, phases=("backward",)),
    Row("data_on_host", "keep the data set on the CPU", _written("data_on_host"), SAME, (), (None,), 1,
        {"temporaries": 1}),
    Row("bucket_view", "keep gradients in DistributedDataParallel's buckets", _updates("bucket_view"), SAME, (),
        (None,), 0, {"temporaries": 1}),
    Row("shard_state", "shard the optimizer state over the ranks (ZeroRedundancyOptimizer)", _sharded_by_ranks, SAME,
        ("step_in_backward", "offload_optimizer", "adam8bit", "adafactor"), (None,), 1, {"state": 1}),
    Row("foreach", "update one parameter at a time (foreach=False)", _updates("foreach"), ROUNDING, ("fused",),
        (None,), 1, {"temporaries": 1}, phases=("optimizer",)),
    Row("fused", "update in one fused kernel (fused=True)", _any(_updates("fused"), _managed), ROUNDING,
        ("foreach", "adafactor", "adam8bit"), (None,), 0, {"temporaries": 1}, phases=("optimizer",)),
    Row("accumulate", "gradient accumulation over smaller batches", _accumulates, ROUNDING,
        ("batch", "step_in_backward"), ("2", "4", "8", "16", "32"), 2,
        {"activations": 1, "temporaries": 1, "rounding": 1}, choice=PIECES),
    Row("checkpoint", "activation checkpointing of the repeated blocks", _blocks, ROUNDING, (), ("1", "2", "3"), 4,
        {"activations": 0.9, "temporaries": 0.3}),
    Row("train_mode", "model.train() before the loop, so that checkpointing works",
        lambda facts: facts["checkpointing_waits"], ROUNDING, (), (None,), 0, {"activations": 0.9, "temporaries": 0.3}),
    Row("step_in_backward", "update each parameter during backward", _updates("step_in_backward"), ROUNDING,
        ("accumulate", "zero_grad", "offload_optimizer"), (None,), 1, {"gradients": 1}),
    Row("offload_activations", "offload activations to the CPU", _trains, SAME, (), (None,), 6,
        {"activations": 0.9}),
    Row("offload_optimizer", "offload the optimizer state to the CPU", _updates("offload_optimizer"), ROUNDING,
        ("step_in_backward", "foreach", "fused", "adam8bit", "adafactor"), (None,), 7, {"state": 1, "temporaries": 1}),
    Row("sdpa", "scaled_dot_product_attention (keeps no scores)", _any(_written("sdpa"), lambda f: f["eager_attention"]),
        ROUNDING, (), (None,), 0, {"activations": 0.9, "temporaries": 0.9},
        phases=("forward", "backward", "evaluation", "generation")),
    Row("chunked_loss", "chunked cross-entropy", _written("chunked_loss"), ROUNDING, (), ("8",), 1,
        {"activations": 0.3, "temporaries": 1}, phases=("forward", "backward")),
    Row("logits_to_keep", "logits of the last token only", _written("logits_to_keep"), ROUNDING, (), (None,), 0,
        {"activations": 1, "temporaries": 1}),
    Row("vae_slicing", "decode one picture at a time", _written("vae_slicing"), ROUNDING, (), (None,), 1,
        {"activations": 1, "temporaries": 1}),
    Row("kv_cache", "offload the KV cache to the CPU", _written("kv_cache"), SAME, ("kv_cache_limit",),
        ("offloaded",), 5, {"temporaries": 1}),
    Row("autocast", "mixed precision", _trains, DIFFERENT, ("bf16_weights",), ("bf16", "fp16"), 0,
        {"activations": 0.5, "temporaries": 0.5}),
    Row("bf16_weights", "the whole model in bfloat16", _trains, DIFFERENT, ("autocast",), (None,), 0,
        {"parameters": 0.5, "gradients": 0.5, "state": 0.5, "activations": 0.5, "temporaries": 0.5}),
    Row("batch", "a smaller batch", _batch, DIFFERENT, ("accumulate",), (), 1,
        {"activations": 1, "temporaries": 1, "rounding": 1}, choice=BATCH),
    Row("sgd_no_momentum", "SGD without momentum", _updates("sgd_no_momentum"), DIFFERENT, (), (None,), 0,
        {"state": 1, "temporaries": 0.5}),
    Row("adafactor", "Adafactor instead of Adam", _any(_updates("adafactor"), _managed), DIFFERENT,
        ("adam8bit", "fused"), (None,), 1, {"state": 1, "temporaries": 0.5}),
    Row("adam8bit", "8-bit Adam", _updates("adam8bit"), DIFFERENT, ("adafactor", "fused"), (None,), 1,
        {"state": 0.75, "temporaries": 0.5}),
    Row("half_weights", "weights in 16 bits", _infers, DIFFERENT, (), ("bf16", "fp16"), 0,
        {"parameters": 0.5, "activations": 0.5, "temporaries": 0.5}),
    Row("int8_weights", "8-bit weights in linear layers", _infers, DIFFERENT, (), (None,), 2, {"parameters": 0.75}),
    Row("kv_cache_limit", "fewer new tokens", _written("kv_cache_limit"), DIFFERENT, ("kv_cache",), (), 0,
        {"temporaries": 1}),
    Row("option_accumulate", "smaller batches, accumulated: the program's own options", _offered, ROUNDING,
        ("option_batch", "accumulate", "batch"), (), 2, {"activations": 1, "temporaries": 1, "rounding": 1},
        choice=OPTION_VALUES),
    Row("option_batch", "a smaller batch: the program's own option", _offered, DIFFERENT, ("accumulate", "batch"), (),
        2, {"activations": 1, "temporaries": 1, "rounding": 1}, choice=OPTION_VALUES),
    Row("option_checkpoint", "activation checkpointing: the program's own option", _offered, ROUNDING, ("checkpoint",),
        (), 4, {"activations": 0.9, "temporaries": 0.3}, choice=OPTION_VALUES),
    Row("option_precision", "mixed precision: the program's own option", _offered, DIFFERENT,
        ("autocast", "bf16_weights"), (), 0, {"activations": 0.5, "temporaries": 0.5}, choice=OPTION_VALUES),
    Row("option_optimizer", "an optimizer with less state: the program's own option", _offered, DIFFERENT,
        ("adafactor", "adam8bit", "sgd_no_momentum"), (), 1, {"state": 1, "temporaries": 0.5}, choice=OPTION_VALUES),
    Row("option_length", "shorter sequences: the program's own option", _offered, DIFFERENT, (), (), 1,
        {"activations": 1, "temporaries": 1}, choice=OPTION_VALUES),
    Row("option_resolution", "smaller pictures: the program's own option", _offered, DIFFERENT, (), (), 1,
        {"activations": 1, "temporaries": 1}, choice=OPTION_VALUES),
    Row("option_weights", "weights in fewer bits: the program's own option", _offered, DIFFERENT,
        ("half_weights", "int8_weights"), (), 2, {"parameters": 0.75, "temporaries": 1}, choice=OPTION_VALUES),
    Row("loader_prefetch", "one batch ahead for each data loader's worker", _loads("prefetch"), SAME, (), ("1",), 1, {}),
    Row("loader_pin", "no pinned memory for batches", _loads("pins"), SAME, (), (None,), 1, {}),
    Row("loader_workers", "fewer data loader workers", _loads("workers"), DIFFERENT, (), (), 2, {}, choice=SETTINGS),
    Row("nothing", "nothing", lambda facts: "nothing" in facts["wished"], SAME, (), (None,), 3,
        {"activations": 0.5, "temporaries": 0.5}),
    Row("empty_cache_out_of_loop", "no empty_cache() in a loop", _written("empty_cache_out_of_loop"), SAME, (), (), 3,
        {"activations": 0.5, "temporaries": 0.5}),
]
BY_ID = {row.id: row for row in ROWS}


def clashes(ids):
    """Pairs of changes that do not go together."""
    return [(one, two) for index, one in enumerate(ids) for two in ids[index + 1:]
            if two in BY_ID[one].conflicts or one in BY_ID[two].conflicts]


def worse(one, two):
    """The weaker of two promises."""
    return max(one, two, key=ORDER.index)


def possible(facts):
    """[{"id", "title", "results", "values", "at_most"}] of what may be tried in a program with these facts; it saves no more than so many
    bytes, where that is known. Of the program's own options each value has its number of pieces that a batch is cut into."""
    promises = {"option_accumulate": DIFFERENT} if _sees_pieces(facts) else {}
    if _each_by_itself(facts):
        promises["option_batch"] = ROUNDING
    own = [{"id": name, "title": title, "results": promises.get(name, promise), "values": [words for words, pieces in rows],
            "pieces": [pieces for words, pieces in rows]}
           for name, title, promise, rows in facts["offers"]]
    return own + [{"id": row.id, "title": row.title, "results": _results(row, facts), "values": _values(row, facts),
                   "at_most": facts["at_most"].get(row.id)} for row in ROWS if row.needs(facts)]


def module_of(name):
    """The module that does a change."""
    return "switches" if name.startswith(OPTION) else name


def _results(row, facts):
    """The promise, as far as the facts alone weaken it: what sees a batch sees smaller ones, and weights that were pruned for good
    are trained again."""
    weak = (row.id == "accumulate" and _sees_pieces(facts)) or (row.id == "prune_remove" and _trains(facts))
    return DIFFERENT if weak else row.results


def _sees_pieces(facts):
    """True where a batch in pieces is another for the model itself: batch normalisation, buffers that each forward pass moves."""
    return facts["batch_norm"] or facts["moving_state"]


def _values(row, facts):
    if row.id == "accumulate" and "accumulate" not in facts["rewrites"]:
        return [k for k in row.values if all(batch % int(k) == 0 for batch in facts["batches"])]
    if row.id == "unused_graphs":
        return ["; ".join(facts["unused_graphs"])]
    if row.id == "loader_workers":
        most = max(loader["workers"] for loader in facts["loaders"])
        halves = [most >> shift for shift in range(1, most.bit_length() + 1)]
        return [str(workers) for workers in halves][:_MOST_WORKER_COUNTS]
    return list(row.values)
