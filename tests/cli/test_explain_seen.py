# SPDX-License-Identifier: Apache-2.0
"""What `tonnage explain` reads beside an error: settings, model and pasted tables; and that its advice does not repeat what is there."""

import json
import subprocess

import pytest
from command import ROOT, TONNAGE

FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.64 " \
       "GiB of which 100.00 MiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in use. Of the " \
       "allocated memory 22.90 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\n"  # fmt: skip
TRAINER = '  File "/env/lib/python3.11/site-packages/transformers/trainer.py", line 3, in training_step\n    loss = model(x)\n'
FORWARD = '  File "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 5, in forward\n    return F.linear(x, w)\n'
MIB, GIB = 2**20, 2**30


def explain(text, *words):
    done = subprocess.run([str(TONNAGE), "explain", *words], input=text.encode(), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def document(text, schema):
    found = json.loads(explain(text, "-", "--json", "-"))
    schema("explain", found)
    return found


# What a program prints, and what is read from it.
SETTINGS = {
    "a command line": ("torchrun train.py --model_name_or_path org/base-7b --per_device_train_batch_size 8 --max_seq_length=2048\n",
                       {"model": "org/base-7b", "micro_batch": 8, "length": 2048}),
    "the Trainer's log": ("[INFO|trainer.py:2078] >>   Instantaneous batch size per device = 2\n"
                          "[INFO|trainer.py:2085] >>   Gradient Accumulation steps = 4\n"
                          "[INFO|trainer.py:2087] >>   Number of trainable parameters = 20,971,520\n",
                          {"micro_batch": 2, "accumulation_steps": 4, "trained_parameters": 20971520}),
    "DeepSpeed's configuration": ('{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 16}\n',
                                  {"micro_batch": 4, "accumulation_steps": 16}),
    "axolotl's configuration": ("base_model: org/base-8b\nmicro_batch_size: 2\nsequence_len: 4096\n",
                                {"model": "org/base-8b", "micro_batch": 2, "length": 4096}),
    "vLLM's start": ("INFO llm_engine.py:70] Initializing an LLM engine with config: model='/models/base-7b', max_seq_len=4096, dtype=half\n",
                     {"model": "/models/base-7b", "length": 4096}),
    "Lightning's table": ("109 M     Trainable params\n0         Non-trainable params\n109 M     Total params\n",
                          {"parameters": 109000000, "trained_parameters": 109000000}),
    "peft's line": ("trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622\n",
                    {"parameters": 6742609920, "trained_parameters": 4194304}),
    "a picture's size": ("python train.py --imgsz 640 --batch 16\n", {"image_size": 640, "micro_batch": 16}),
    "the setting of one card goes before a sum": ("train_batch_size: 512\nper_device_train_batch_size: 4\n", {"micro_batch": 4}),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name, schema):
    text, wanted = SETTINGS[name]
    seen = document(text + FULL, schema)["seen"]
    assert {key: seen[key] for key in wanted} == wanted
    rest = set(seen) - set(wanted) - {"nvidia_smi", "memory_summary"}
    assert all(seen[key] is None for key in rest)


@pytest.mark.parametrize("text", ["", "a model of that size\n", "batch: the third\n", "batch_size=\n", "for batch in loader:\n", "model=\n",
                                  "| a | b |\n", "minibatch_sizes: 4\n", "batch_size: 0.5\n", "--batch_size\n"])  # fmt: skip
def test_nothing_is_read_from_other_words(text, schema):
    assert "seen" not in document(text + FULL, schema)


def test_tables_that_were_pasted_along(schema):
    text = (ROOT / "tests/golden/explain/settings_seen.txt").read_text()
    seen = document(text, schema)["seen"]
    assert seen["nvidia_smi"] == [{"index": 0, "used_bytes": 23758 * MIB, "total_bytes": 24564 * MIB, "processes": [[4242, 23746 * MIB]]}]
    assert (seen["memory_summary"]["allocated_bytes"], seen["memory_summary"]["peak_reserved_bytes"]) == (23244 * MIB, 23306 * MIB)
    screen = explain(text, "-")
    assert "The text also says" in screen and "card 0 holds 23.20 GiB of 23.99 GiB" in screen


def test_the_batch_is_named_in_the_advice(schema):
    text = TRAINER + FORWARD + FULL
    assert "per_device_train_batch_size from 8 to 4" in document("--per_device_train_batch_size 8\n" + text, schema)["errors"][0]["do"][0]
    assert "per_device_train_batch_size and double" in document(text, schema)["errors"][0]["do"][0]


def test_a_batch_of_one_is_not_halved(schema):
    steps = document("per_device_train_batch_size=1\n" + TRAINER + FORWARD + FULL, schema)["errors"][0]["do"]
    assert not any("Halve" in step for step in steps)
    assert "gradient_checkpointing=True" in steps[0]


def test_an_engine_says_what_fits(schema):
    text = (ROOT / "tests/golden/explain/vllm_cache_length.txt").read_text()
    error = document(text, schema)["errors"][0]
    assert error["need"] == {"budget_bytes": round(4.21 * GIB), "needed_bytes": 16 * GIB, "budget_tokens": 34480, "needed_tokens": 131072}
    assert "--max-model-len 34480" in error["do"][0]
    assert document(FULL, schema)["errors"][0]["need"] is None


def test_what_run_cannot_play_is_said():
    mine = "tonnage run and fix simulate NVIDIA cards only"
    assert mine in explain((ROOT / "tests/golden/explain/mps.txt").read_text(), "-")
    assert mine in explain((ROOT / "tests/golden/explain/hip.txt").read_text(), "-")
    assert mine not in explain(FULL, "-")


def test_remedies_of_real_threads():
    """The bench of 41 threads: the true remedy is among the first two lines in four of five, and nothing is advised that is there."""
    bench = [str(ROOT / "bench/explain_remedies.py"), "--tonnage", str(TONNAGE)]
    done = subprocess.run(bench, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
