#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores serve-plan against published start-up logs (logs.toml).

    bench/serve_plan/score.py

One line a figure: published, ours, the difference. What the engine found free is taken from the log where it stands there, so that weights and the
layout of the cache are judged apart from the model of activations; `predict_gib` judges that. Ends with 1 when a figure other than a prediction is off by
more than 3 %.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TONNAGE = HERE.parents[1] / "build/bin/tonnage"
LIMIT = 0.03
GIB = 1 << 30


def plan(log, extra=()):
    """serve-plan's JSON for a log's model and options."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.json").write_bytes((HERE / "configs" / f"{log['config']}.json").read_bytes())
        done = subprocess.run([TONNAGE, "serve-plan", folder, "--json", f"--gpu={log['gpu']}", *log["options"], *extra], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"{log['name']}: {done.stderr}")
    return json.loads(done.stdout)


def ours(log):
    extra = [f"--kv-cache-memory-bytes={int(log['available_gib'] * GIB)}"] if "available_gib" in log else []
    document = plan(log, extra)
    cache = document["kv_cache"]
    figures = {"blocks": cache["blocks"], "tokens": cache["tokens"], "sequences": cache["sequences"], "longest": cache["longest"]}
    figures["needed_gib"] = cache["needed_bytes"] / GIB if cache["needed_bytes"] else None
    figures["weights_gib"] = document["weights"]["bytes"] / GIB if document["weights"] else None
    return figures


def show(name, figure, published, own):
    difference = own / published - 1 if own is not None else float("nan")
    print(f"{name:52} {figure:14} {published:>12} {'unknown' if own is None else f'{own:.4f}'.rstrip('0').rstrip('.'):>14} {100 * difference:+8.2f} %")
    return own is not None and abs(difference) <= LIMIT


def main():
    logs = tomllib.loads((HERE / "logs.toml").read_text())["log"]
    good = total = whole = 0
    for log in logs:
        figures = ours(log)
        results = [show(log["name"], figure, published, figures[figure]) for figure, published in log["published"].items()]
        good, total, whole = good + sum(results), total + len(results), whole + all(results)
        if "predict_gib" in log:
            show(log["name"], "predicted", log["predict_gib"], plan(log)["kv_cache"]["available"]["bytes"] / GIB)
    print(f"{good} of {total} figures, {whole} of {len(logs)} logs within {100 * LIMIT:.0f} % (predictions not counted)")
    return 0 if good == total else 1


if __name__ == "__main__":
    sys.exit(main())
