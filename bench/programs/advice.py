#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a report advises what its program already does: by a rule's condition, not by eye.

    bench/programs/advice.py [--results FOLDER] [--only TEXT]

Reads the results that run.py has stored (build/programs/results), runs nothing, prints a line for each program and ends with 1
where a piece of advice is void. Three sources are held against each piece:

    the facts that the report itself carries, by the rules below, which share nothing with src/verdict/advice.c
    what the row of table.toml says that the program does (`follows`), written by hand without looking at Tonnage
    the condition that the report says was checked (`holds`)

A piece that is not known here is void, too: whoever adds one says here when it is wrong. Results of builds that gave no ids
are judged by their words.
"""

import argparse
import json
import pathlib
import re
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "build/programs/results"


def _share(part, whole):
    """True when at least half is so; nothing is so where nothing is known."""
    return bool(whole) and 2 * part >= whole


def _has_16_bits(f):
    return f["parameter_bytes"] and not _share(f["wide_parameter_bytes"], f["parameter_bytes"])


def _trains_little(f):
    return f["parameter_bytes"] and 4 * f["trained_parameter_bytes"] <= f["parameter_bytes"]


def _infers(f):
    return not f["trains"]


# id -> (words of a build without ids, what a row follows, {what the facts say: question})
RULES = {
    "checkpointing": (r"torch\.utils\.checkpoint", {"checkpointing", "inference"},
                      {"it checkpoints": lambda f: f["checkpointing"] or f["checkpointing_waits"], "it infers": _infers}),
    "train_mode": (r"model\.train\(\)", {"inference"}, {"it is in train()": lambda f: not f["trained_in_eval"]}),
    "autocast": (r"\bautocast to\b", {"autocast", "16_bits"},
                 {"autocast is on": lambda f: f["autocast"], "it has 16 bits": _has_16_bits}),
    "parameters_16_bits": (r"16-bit parameters", {"16_bits", "8_bits", "4_bits"}, {"it has 16 bits": _has_16_bits}),
    "inference_16_bits": (r"the model in 16 bits", {"16_bits", "8_bits", "4_bits"}, {"it has 16 bits": _has_16_bits}),
    "quantise": (r"weights in 8 or 4 bits", {"8_bits", "4_bits"},
                 {"it is quantised": lambda f: _share(f["small_parameter_bytes"], f["parameter_bytes"]),
                  "it trains": lambda f: f["trains"]}),
    "quantise_frozen": (r"\(QLoRA", {"8_bits", "4_bits", "inference"},
                        {"it trains most": lambda f: not _trains_little(f), "it infers": _infers}),
    "shard_model": (r"sharded over the ranks", {"sharded"}, {"it is sharded": lambda f: f.get("sharded")}),
    "shard_early": (r"sharded before it is on the card", {"sharded"}, {"it is sharded": lambda f: f.get("sharded")}),
    "small_state": (r"8-bit Adam", {"small_state", "inference", "lora"},
                    {"its optimizer is small": lambda f: f["small_optimizer_state"], "it infers": _infers,
                     "it trains little": _trains_little}),
    "lora": (r"\(LoRA\)", {"lora", "inference"}, {"it trains little": _trains_little, "it infers": _infers}),
    "accumulate": (r"gradient accumulation", {"batch_of_one", "inference"}, {"it infers": _infers}),
    "smaller_batch": (None, {"batch_of_one"}, {"it trains": lambda f: f["trains"]}),
    "fewer_workers": (r"fewer data loader workers", {"no_loader"}, {"it has no loader": lambda f: not f["loader"]}),
    "pin_by_loader": (r"let the DataLoader", {"no_loader"}, {"it has no loader": lambda f: not f["loader"]}),
    "expandable": (r"expandable_segments:True", {"expandable"}, {"they are on": lambda f: f["expandable_segments"]}),
    "no_grad": (r"no_grad\(\): around", {"inference"}, {"it trains so": lambda f: f["trained_in_eval"]}),
    "no_benchmark": (r"cudnn\.benchmark", {"no_benchmark"}, {"it is off": lambda f: not f["cudnn_benchmark"]}),
    "workspace_config": (r"CUBLAS_WORKSPACE_CONFIG", set(), {"it is set": lambda f: f["workspace_config"]}),
    "copy_on_cpu": (r"keep the copy on the CPU", {"copy_on_cpu"}, {"the copy is called": lambda f: f["copy_called"]}),
    "copy_in_16_bits": (r"store the copy in 16 bits", {"16_bits"},
                        {"it has 16 bits": _has_16_bits, "it is not called": lambda f: not f["copy_called"]}),
    "chunked_loss": (r"chunked cross-entropy", {"chunked_loss", "inference"}, {"it infers": _infers}),
}  # fmt: skip
# What hangs on its finding alone: the finding is the evidence.
BY_FINDING = set(
    "multi_gpu no_grad_around less_pinned in_pieces work_in_pieces raise_limit let_go keep_less keep_on_cpu build_on_cpu no_foreach "
    "zero_grad sdpa shorter fewer_logits bucket_view empty_cache_once in_place no_empty_cache less_memory batch_by_batch "
    "zero_grad_after_step delete_optimizer prune_remove smaller_kv_cache make_once pin_few tensor_itself memory_reserved "
    "keep_the_graph lazy_linear state_to_cpu bound_input leave_except move_layers reduce_bucket_size loss_inside set_device delete_checkpoint map_location".split()
)
# Whose condition is about other programs on the card; the bench runs one, and the facts say nothing of others.
BY_OTHERS = {"end_others", "take_turns", "smaller_part"}


def advice_of(report):
    """The pieces of a report: (id, its own condition or True)."""
    if "advice" in report:
        return [(piece["id"], piece["holds"]) for piece in report["advice"]]
    words = " ".join(finding.get("do") or "" for finding in report.get("findings") or [])
    return [(name, True) for name, (pattern, _, _) in RULES.items() if pattern and re.search(pattern, words)]


def _said_by_facts(questions, facts):
    for words, question in questions.items():
        try:
            if question(facts):
                yield words
        except KeyError:  # a build that does not tell it
            pass


def void(row, report):
    """[(id, why)] of the pieces of this report that are void."""
    follows, facts = set(row.get("follows", [])), report.get("facts") or {}
    found = []
    for name, holds in advice_of(report):
        if name not in RULES and name not in BY_FINDING | BY_OTHERS:
            found.append((name, "nothing is known of it here"))
            continue
        _, done, questions = RULES.get(name, (None, set(), {}))
        reasons = [] if holds else ["its own condition does not hold"]
        reasons += ["the program has " + ", ".join(sorted(follows & done))] if follows & done else []
        reasons += ["the run has seen that " + words for words in _said_by_facts(questions, facts)]
        found += [(name, reason) for reason in reasons]
    return found


def check(row, report):
    """Why pieces of this report's advice are void, a line each."""
    return [f"{row['name']}: {name}: {why}" for name, why in void(row, report or {})]


def check_all(rows, results):
    return [line for row in rows if results.get(row["name"]) for line in check(row, results[row["name"]]["report"])]


def _stored(folder, name):
    path = folder / f"{name}.json"
    return json.loads(path.read_text())["report"] if path.exists() else None


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, metavar="FOLDER", help="what run.py has stored")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name holds it")
    options = parser.parse_args(words)
    rows = [row for row in tomllib.loads((HERE / "table.toml").read_text())["program"] if options.only in row["name"]]
    seen, wrong, pieces = 0, 0, 0
    for row in rows:
        report = _stored(options.results, row["name"])
        if report is None:
            continue
        given, found = [name for name, _ in advice_of(report)], void(row, report)
        seen, wrong, pieces = seen + 1, wrong + bool(found), pieces + len(given)
        print(f"{'VOID' if found else 'good':5} {row['name']:34} {' '.join(given) or '-'}")
        for name, why in found:
            print(f"      {name}: {why}")
    print(f"{pieces} pieces of advice in {seen} of {len(rows)} programs; {wrong} programs with a void one")
    if not seen:
        print(f"nothing is stored in {options.results}: bench/programs/run.py makes it")
    return 0 if seen and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
