# SPDX-License-Identifier: Apache-2.0
"""What an option of a program's command line is for, by its name and type, and what to set it to for less memory.

Names are told apart by their words: `--per-device-train-batch-size`, `--batchSize` and `-b` are the batch of one pass,
`--total-batch-size` is not; what it stands in counts, too: `val.batch_size` is another's. What an option really does is seen in
its trial (pace.py); nothing here is believed.
"""

import re

_SPLIT = re.compile(r"[^a-zA-Z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
_TOTAL = {"total", "global", "effective"}
_OTHERS = {"eval", "evaluation", "val", "valid", "validation", "test", "vb", "infer", "inference", "predict", "prediction",
           "generation", "gen", "sample", "samples", "rollout", "prefetch", "workers", "log", "multiplier", "sampler", "norm",
           "per_epoch", "epoch", "steps", "sizes", "mode", "split", "factor", "rampup", "lookahead", "growth"}  # fmt: skip
_LIMIT = {"max", "batch"}  # of one pass, where another batch is larger
_SMALL = (_LIMIT, {"micro"}, {"microbatch"}, {"mbs"}, {"per", "device"}, {"device"}, {"per", "gpu"}, {"batch", "gpu"})
_BATCH = {"batch", "batchsize", "bs", "bsz", "microbatch", "mbs", "b", "microbatchsize"}
_OTHER_PARTS = {"eval", "evaluation", "val", "valid", "validation", "test", "infer", "inference", "predict", "prediction",
                "generation", "sample", "sampling", "rollout"}  # of a configuration
_MODELS = {"g", "d", "gen", "disc", "generator", "discriminator", "actor", "critic"}  # that are trained beside each other: all are set
_ACCUMULATION = re.compile(r"^(accum|accumulate|accumulations?|accumulated|gradaccum)$")
_ACCUMULATIONS = ({"grad", "acc"}, {"gradient", "acc"}, {"update", "freq"}, {"iter", "size"})
_CHUNKS = ({"batch", "chunk"}, {"batch", "chunks"}, {"num", "microbatches"}, {"num", "micro", "batches"}, {"batch", "splits"},
           {"batch", "split"})  # fmt: skip
_CHECKPOINT = {"checkpoint", "checkpointing", "ckpt", "checkpoints", "recompute", "recomputation", "remat"}
_GRADIENT = {"gradient", "grad", "activation", "activations", "act", "use", "enable", "recompute", "recomputation", "remat"}
_LENGTH = ({"block", "size"}, {"max", "length"}, {"max", "len"}, {"seq", "length"}, {"seq", "len"}, {"seqlen"}, {"bptt"},
           {"sequence", "length"}, {"context", "length"}, {"cutoff", "len"}, {"max", "seqlen"}, {"n", "ctx"})  # fmt: skip
_RESOLUTION = ({"img", "size"}, {"image", "size"}, {"resolution"}, {"imgsz"}, {"crop", "size"}, {"input", "size"})
_HALF = ("bf16", "bfloat16", "bf16-mixed", "bf16_mixed")
_LIGHTNING = ("bf16-mixed",)  # its trainer's, where nothing lists them
_FULL = (None, "no", "fp32", "float32", "32", "32-true", "none", "")
_SMALL_OPTIMIZERS = ("adafactor", "adamw_8bit", "adamw_bnb_8bit")
_BITS = ("8bit", "4bit")  # of weights, as in --load-in-4bit
_MOST_PIECES = 64
_CONSTANT = re.compile(r"file:[^:]*\.py:\w+=")  # file:train.py:BATCH_SIZE=4


def words(name):
    """{"grad", "accum", "steps"} of --grad-accum-steps."""
    return {word.lower() for word in _SPLIT.split(name.split(".")[-1]) if word}


def role(option):
    """"batch", "total", "accumulation", "chunks", "checkpointing", "precision", "optimizer", "length", "resolution", "8bit", "4bit", or None."""
    said = words(option.name)
    whole = option.kind == "int"
    truth = option.kind in ("flag", "bool")
    if any(words(part) & _OTHER_PARTS for part in option.name.split(".")[:-1]):
        return None
    if whole and (any(_ACCUMULATION.match(word) for word in said) or any(each <= said for each in _ACCUMULATIONS)):
        return "accumulation" if not said & {"eval", "evaluation"} else None
    if whole and any(each <= said for each in _CHUNKS):
        return "chunks"
    if whole and said & _BATCH:
        if said & _TOTAL:
            return "total"
        return "batch" if not said & _OTHERS else None
    if truth and said & _CHECKPOINT and said & _GRADIENT and not said & _OTHERS:
        return "checkpointing"
    if truth and "load" in said and said & set(_BITS):
        return next(bits for bits in _BITS if bits in said)
    if (truth and said & {"amp", "fp16", "bf16"} and len(said) <= 2) or (
            option.kind == "str" and (said & {"precision", "dtype"}) and not said & {"param", "cache", "kv", "model"}):
        return "precision"
    if option.kind == "str" and said in ({"optim"}, {"optimizer"}, {"opt"}, {"optimizer", "name"}):
        return "optimizer"
    if whole and not said & _OTHERS:
        if any(each <= said for each in _LENGTH):
            return "length"
        if any(each <= said for each in _RESOLUTION):
            return "resolution"
    return None


def by_role(options, others=()):
    """{role: Option}; of several batches the one that says most plainly that it is that of one pass. What `others` say, lists
    of options that stand elsewhere, counts where these say nothing: an option that is not given has the value that the
    configuration has under the same name."""
    chosen = _chosen([option for option in options if option.spellings])
    for more in others:
        theirs = _chosen(more)
        twins = theirs.pop("twins", None)
        for of, option in theirs.items():
            mine = chosen.get(of)
            if mine is not None and mine.value is None and words(mine.name) == words(option.name):
                chosen[of] = mine._replace(value=option.value)
            elif option.spellings and (mine is None or mine.value is None):
                chosen[of] = option
        if twins is not None and chosen.get("accumulation") is theirs["accumulation"]:
            chosen["twins"] = twins
    return chosen


def _chosen(options):
    found = {}
    for option in options:
        of = role(option)
        if of is not None:
            found.setdefault(of, []).append(option)
    chosen = {}
    for of, several in found.items():
        if of == "precision" and any(option.kind in ("flag", "bool") and option.value for option in several):
            continue  # it has one already
        if of == "batch":
            several = found[of] = [option for option in several if not _is_idle_limit(option, several)] or several
        several.sort(key=_rank)
        if of not in ("batch", "accumulation") or len(several) == 1 or _rank(several[0])[:2] < _rank(several[1])[:2]:
            chosen[of] = several[0]
        elif of == "accumulation":
            of_models = [option for option in several if words(option.name) & _MODELS]
            if len(of_models) > 1 and len({option.value for option in of_models}) == 1:
                chosen[of], chosen["twins"] = of_models[0], of_models[1:]
    said = words(chosen["batch"].name) if "batch" in chosen and len(found["batch"]) > 1 else set()
    if "micro" in "".join(said) or {"batch", "gpu"} <= said or _LIMIT <= said:
        chosen.setdefault("total", found["batch"][1])  # --batch_size 64 --microbatch 8, --batch 64 --batch-gpu 8: the first is the whole
    return chosen


def _is_idle_limit(option, batches):
    """True for the most that a batch may be, where no batch is cut by it."""
    return _LIMIT <= words(option.name) and not any(_positive(option.value) and _positive(batch.value) and option.value < batch.value
                                                    for batch in batches)


def _rank(option):
    """The first is the one that is meant: what says so plainly, then what is in use (`--gpu0_bsz -1` is not), then what was typed."""
    return -_plainness(option), option.value is not None and not _positive(option.value), option.typed is None


def _plainness(option):
    said = words(option.name)
    return 2 * any(each <= said for each in _SMALL) + bool(said & {"train", "training", "bf16"})


def written(option, value):
    """How an option is set on the command line: "--batch-size 4"."""
    name = option.typed or max(option.spellings, key=len)
    if option.kind == "flag":
        return name
    return ("%s=%s" if option.equals else "%s %s") % (name, value)


def offers(options, others=(), batches=()):
    """[(id, title, promise, [(words to set, pieces of a batch or 0), ...])] of what a program's options can do. `batches`: sizes that
    its loaders were seen to have."""
    chosen = by_role(options, others)
    return [_named(offer) for offer in (_accumulation(chosen, batches), _batch(chosen), _checkpointing(chosen), _precision(chosen),
                                        _optimizer(chosen), _weights(chosen), _smaller(chosen, "length", "shorter sequences"),
                                        _smaller(chosen, "resolution", "smaller pictures")) if offer and offer[3]]  # fmt: skip


def _named(offer):
    """A number in the program's text is no option to those who read the list."""
    of, title, promise, rows = offer
    if all(_CONSTANT.match(word) for word in rows[0][0].split()):
        title = title.replace("own option", "own constant")
    return of, title, promise, rows


def forbids_accumulation(options, others=()):
    """True where an option says what all passes of an update have together: the program cuts batches itself."""
    return "total" in by_role(options, others)


def _pieces(size):
    return [k for k in range(2, _MOST_PIECES + 1) if size % k == 0]


def _accumulation(chosen, batches):
    batch, often, chunks = chosen.get("batch"), chosen.get("accumulation"), chosen.get("chunks")
    size = batch.value if batch is not None and _positive(batch.value) else 0
    if chunks is not None and (size or batches):  # the program cuts the batch itself, wherever the size of it stands
        before, size = chunks.value if _positive(chunks.value) else 1, size or max(batches)
        rows = [(written(chunks, before * k), k) for k in _pieces(size // before) if size % before == 0]
    elif often is not None and size:
        before = often.value if _positive(often.value) else 1
        every = [often, *chosen.get("twins", ())]
        rows = [(" ".join([written(batch, batch.value // k)] + [written(each, before * k) for each in every]), k) for k in _pieces(batch.value)]
    else:
        return None
    return "option_accumulate", "smaller batches, accumulated: the program's own options", "same_up_to_rounding", rows


def _batch(chosen):
    batch, total = chosen.get("batch"), chosen.get("total")
    if batch is None:
        return None
    size = batch.value if _positive(batch.value) else total.value if total is not None and _positive(total.value) else 0
    rows = [(written(batch, size // k), k) for k in (_pieces(size) if size else ())]
    promise = "same_up_to_rounding" if total is not None else "different_training"
    title = "smaller batches of one pass: the program's own option" if total is not None else (
        "a smaller batch: the program's own option")
    return "option_batch", title, promise, rows


def _checkpointing(chosen):
    option = chosen.get("checkpointing")
    rows = [(written(option, "True"), 0)] if option is not None and not option.value else []
    return "option_checkpoint", "activation checkpointing: the program's own option", "same_up_to_rounding", rows


def _precision(chosen):
    option = chosen.get("precision")
    if option is None:
        return None
    rows = []
    if option.kind in ("flag", "bool"):
        rows = [(written(option, "True"), 0)] if not option.value else []
    elif str(option.value).lower() in _FULL or option.value is None:
        known = option.choices or (_LIGHTNING if option.name.endswith("trainer.precision") else ())
        rows = [(written(option, value), 0) for value in _HALF if value in known][:1]
        if not rows and option.value == "float32":
            rows = [(written(option, "bfloat16"), 0)]
    return "option_precision", "mixed precision: the program's own option", "different_training", rows


def _optimizer(chosen):
    option = chosen.get("optimizer")
    known = option.choices or () if option is not None else ()
    rows = [(written(option, name), 0) for name in _SMALL_OPTIMIZERS
            if name in known and option.value not in _SMALL_OPTIMIZERS][:1]
    return "option_optimizer", "an optimizer with less state: the program's own option", "different_training", rows


def _weights(chosen):
    switches = [chosen[bits] for bits in _BITS if bits in chosen]
    rows = [(written(option, "True"), 0) for option in switches] if not any(option.value for option in switches) else []
    return "option_weights", "weights in fewer bits: the program's own option", "different_training", rows


def _smaller(chosen, of, title):
    option = chosen.get(of)
    rows = []
    if option is not None and _positive(option.value) and option.value % 2 == 0:
        rows = [(written(option, option.value // 2), 2)]
    return "option_" + of, title + ": the program's own option", "different_training", rows


def _positive(value):
    return type(value) is int and value > 0
