#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchtune's published memory of Llama 3.2 3B, beside what its own recipes take on the virtual card.

    bench/published/torchtune_ladder.py [STEP...]

The published figures are those of torchtune's README ("Optimization flags": full_finetune_single_device, batch size 2, 4,096
tokens, bf16, A100; peak active memory, each step on top of the one before, but for LoRA and QLoRA, which take neither the fused
optimizer step nor 8-bit AdamW). The recipe prints the same figure (`peak_memory_active`), which is read from what it prints.
Weights are a header with holes, texts are made: packed ones fill their 4,096 tokens, as published. The baseline's are short, as most of the Alpaca data are: then its peak is in the update, and the
same for texts of 100 and of 350 letters (25.49); with 900 letters, as this bench had them first, it is 29.61, in the loss. Which batch was published, the README does not tell. LoRA and QLoRA
took 0.9 and 1.1 GiB more than published before a stream's bound (doc/design/0003-time.md). What is left of that, 0.4 GiB each, is AdamW's state of the adapters (0.34 GiB): in their first step, before
it is there, they take 8.57 (+0.8 %) and 4.68 GiB (+1.7 %); the rows are the most of all steps. Writes bench/results/torchtune_ladder.csv.
"""

import base64
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

from llama_files import Llama, write_file

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = ROOT / "bench/results/torchtune_ladder.csv"
ENVIRONMENT = "prog-torchtune"
TOKENS = 4096

MODEL = Llama(28, 3072, 8192, 128256, 8 * 128, 24, tied=True)  # torchtune's llama3_2_3b

FULL = "llama3_2/3B_full_single_device"
STEPS = {  # name -> (published GiB, recipe, configuration, settings that come on top of those before)
    "baseline": (25.5, "full_finetune_single_device", FULL, [
        "optimizer._component_=torch.optim.AdamW", "optimizer.fused=True", "optimizer_in_bwd=False",
        "enable_activation_checkpointing=False", "loss._component_=torch.nn.CrossEntropyLoss"]),
    "packed": (60.0, "full_finetune_single_device", FULL, ["dataset.packed=True"]),
    "compile": (51.0, "full_finetune_single_device", FULL, ["compile=True"]),
    "chunked loss": (42.9, "full_finetune_single_device", FULL, ["loss._component_=torchtune.modules.loss.CEWithChunkedOutputLoss"]),
    "checkpointing": (24.9, "full_finetune_single_device", FULL, ["enable_activation_checkpointing=True"]),
    "step in backward": (23.1, "full_finetune_single_device", FULL, ["optimizer_in_bwd=True"]),
    "offloading": (21.8, "full_finetune_single_device", FULL, ["enable_activation_offloading=True"]),
    "8-bit AdamW": (17.6, "full_finetune_single_device", FULL, ["optimizer._component_=torchao.optim.AdamW8bit", "~optimizer.fused"]),
    "LoRA": (8.5, "lora_finetune_single_device", "llama3_2/3B_lora_single_device", []),
    "QLoRA": (4.6, "lora_finetune_single_device", "llama3_2/3B_qlora_single_device", []),
}  # fmt: skip
OF_FULL = ("optimizer", "~optimizer")  # settings that LoRA's recipes do not take


def write_model(folder):
    write_file(folder / "model.safetensors", MODEL.shapes())
    MODEL.write_config(folder)
    (folder / "tokenizer.model").write_text(
        "".join(f"{base64.b64encode(bytes([value])).decode()} {value}\n" for value in range(256)))


def write_texts(path):
    choose = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz     "
    path.write_text(json.dumps([
        {"instruction": "".join(choose.choices(letters, k=100)), "input": "", "output": "".join(choose.choices(letters, k=250))}
        for _ in range(400)]))  # fmt: skip


def settings_of(name):
    """Those of the step and of all before it."""
    told = []
    for step, (_, _, _, more) in STEPS.items():
        told += more
        if step == name:
            break
    if name in ("LoRA", "QLoRA"):
        told = [setting for setting in told if not setting.startswith(OF_FULL)]
    removed = {setting[1:] for setting in told if setting.startswith("~")}
    last = {setting.split("=")[0]: setting for setting in told if not setting.startswith("~")}
    return [setting for key, setting in last.items() if key not in removed]


def run(name, folder, python):
    _, recipe, configuration, _ = STEPS[name]
    common = [
        f"tokenizer.path={folder}/model/tokenizer.model", f"tokenizer.max_seq_len={TOKENS}", f"checkpointer.checkpoint_dir={folder}/model",
        "checkpointer.checkpoint_files=[model.safetensors]", "dataset._component_=torchtune.datasets.alpaca_dataset",
        "dataset.source=json", f"dataset.data_files={folder}/data.json", "batch_size=2", "max_steps_per_epoch=6", "epochs=1",
        f"output_dir={folder}/out", "gradient_accumulation_steps=1", "log_peak_memory_stats=True",
        "metric_logger._component_=torchtune.training.metric_logging.StdoutLogger"]  # fmt: skip
    tune = pathlib.Path(python).parent / "tune"
    report = folder / "report.json"
    began = time.monotonic()
    done = subprocess.run(
        [ROOT / "build/bin/tonnage", "run", "--gpu=a100-80", "--steps=all", "--seconds=500", "--no-detail", f"--json={report}", "--",
         python, tune, "run", recipe, "--config", configuration, *common, *settings_of(name)],
        cwd=folder, capture_output=True, text=True)  # fmt: skip
    seconds = time.monotonic() - began
    (folder / f"{name.replace(' ', '_')}.log").write_text(done.stdout + done.stderr)
    told = [float(figure) for figure in re.findall(r"peak_memory_active:([0-9.]+)", done.stdout)]
    return (max(told) if told else None), done.returncode, seconds


def main():
    names = sys.argv[1:] or list(STEPS)
    python = subprocess.run([ROOT / "tools/envs", "--path", ENVIRONMENT], capture_output=True, text=True, check=True).stdout.strip()
    build = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    rows = {}
    if RESULTS.exists():
        rows = {line.split(",")[0]: line for line in RESULTS.read_text().splitlines()[1:]}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model").mkdir()
        write_model(folder / "model")
        write_texts(folder / "data.json")
        for step in names:
            published = STEPS[step][0]
            active, status, seconds = run(step, folder, python)
            off = f"{100 * (active / published - 1):+.1f}" if active else ""
            told = f"{active:.2f}" if active else ""
            rows[step] = f"{step},{published},{told},{off},{status},{seconds:.0f},{build}"
            print(rows[step], flush=True)
            RESULTS.write_text("step,published_gib,active_gib,off_percent,status,seconds,build\n"
                               + "".join(rows[key] + "\n" for key in STEPS if key in rows))  # fmt: skip
            if not active:
                print((folder / f"{step.replace(' ', '_')}.log").read_text()[-3000:], file=sys.stderr)


if __name__ == "__main__":
    main()
