#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of jobs on several cards that others have published, beside what the same programs take on virtual cards.

    bench/published/sharded.py [ROW...]

Each row is a recipe of the program's own package, with the settings that its authors told, and the figure that they told; what the program
itself prints is read from its output. The published figures stood here before any of the rows was run. Weights are a header with holes, tokenizers and
texts are made. Of a job's ranks the usual few are run (`--ranks`, `--nodes`). Writes bench/results/sharded.csv.

torchtitan's figures are the most that PyTorch had reserved (its `memory:`), of an H100 of 95.04 GiB, sequences of 8,192 tokens, one shard a card, per-operation
selective checkpointing, AdamW fused, parameters float32 and gathered in bfloat16, no 8-bit floats; torchtune's the most that was active or allocated (its README does
not tell which), packed to 2,048 tokens, batch 2, compiled; those of DeepSpeed `max_memory_allocated`.

Differences above 5 %: torchtitan's wheel of 2025 compiles the loss, too, which the commit of the figures does not; from that commit the two rows of 128 cards are within 0.2 %,
and those of 8 cards gave 82.50 and 76.97 when their command was run by hand. torchtune's 405B is told to be of batch 2, as all rows of its table: then a card holds the weights' part
(24.1 GiB in NF4), its part of the embeddings (1.0), these whole, as the root of FSDP2 leaves them after the forward pass (7.8), the adapters with their state (0.6) and the inputs of 126 layers (15.75),
49.2 GiB before any work is done, where 44.8 were told; the recipe of that day (30b8519) could not yet move the inputs to the host, and its configuration says batch 1, with which the sum is 41.4.
torchao's baseline is of compiled torchtitan, too: from the commit
of 2024 it is 48.68 (+2.2 %). The figures of ZeRO-3 came out within 1 % (75.59, 38.78 and 20.31) when the program became what its author's other ones are (zero_llama.py), with DeepSpeed 0.14.2 and
transformers 4.40.2, written down before it ran; with DeepSpeed 0.19.8 and its defaults they were 64.14, 36.09 and 20.55. Both mechanisms stand in the published table: it grows by 0.48 GiB
allocated and 3.11 GiB at most a sample, where ours grew by 2.59; a sample's float32 logits are 4,096 x 32,000 x 4 bytes, 0.49 GiB, and live while the next batch runs since the output is kept. And with
memory_efficient_linear off F.linear keeps each gathered weight from the forward to the backward pass, which without checkpointing is 32 x 202,375,168 x 2 bytes, 12.06 GiB. Not explained: torchtune's
70B with LoRA, which with a batch of 1 is 27.74, and 405B with that batch 51.65 (../README.md says what was ruled out), and ZeRO-2. Of ZeRO-2 the kept logits are 1.95 GiB, which makes 35.88 of 33.93 (-7.0 %). The other 2.7 are there when nothing runs: the table has 27.2 allocated after a batch, where model, master
copy, state and logits are 23.9. What it tells of batch 1 (19.4 allocated, 23.5 at most) is less than these alone (22.5), so it was read before the first update. The program itself could not be run with
ZeRO-2: a rank was killed (signal 9) before the first step, most likely since transformers of that day fills 13 GB of weights on the host in each rank, and this machine has 24. All that ZeRO-3's program
differs in was changed at once: what each change gives is by hand, not by runs of its own. "torchtune 70B, offloaded" cannot be
run on 24 GB: its optimizer really works on the host.
"""

import base64
import csv
import json
import os
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
RESULTS = ROOT / "bench/results/sharded.csv"
LOGS = ROOT / "build/published"  # what the programs printed

TITAN = "torchtitan, benchmarks/llama3_h100_202412_torchtitan.md"
TUNE = "torchtune 0.6.1, README, Memory and training speed"
GIST = "gist.github.com/chenyaofo/d4cd6a20ab4b95cb3a49491747e2139a"

H100_8 = ["--gpu=h100", "--memory=95.04GiB", "--gpus=8", "--ranks=0,1,7"]
H100_128 = ["--gpu=h100", "--memory=95.04GiB", "--gpus=8", "--nodes=16"]
A100_8 = ["--gpu=a100-80", "--gpus=8", "--ranks=0,1,7"]

LLAMA_70B = Llama(80, 8192, 28672, 128256, 8 * 128, 64)
LLAMA_405B = Llama(126, 16384, 53248, 128256, 8 * 128, 128)

PACKED = ["tokenizer.max_seq_len=2048", "dataset.packed=True", "batch_size=2", "compile=True", "gradient_accumulation_steps=1"]

FLOAT8 = ["--float8.enable_float8_linear", "--float8.enable_fsdp_float8_all_gather", "--float8.precompute_float8_dynamic_scale_for_fsdp"]

ROWS = {  # name -> (published GiB, source, cards, how it is started)
    "torchtitan, 8 cards": (82.4, TITAN + ", table 1", H100_8, ("titan", 8, 1, ["--training.local-batch-size=2"])),
    "torchtitan compiled, 8 cards": (77.0, TITAN + ", table 1", H100_8, ("titan", 8, 1, ["--training.local-batch-size=2", "--training.compile"])),
    "torchtitan, 128 cards": (67.0, TITAN + ", table 3", H100_128, ("titan", 8, 16, ["--training.local-batch-size=2"])),
    "torchtitan compiled, 128 cards": (62.0, TITAN + ", table 3", H100_128,
                                       ("titan", 8, 16, ["--training.local-batch-size=2", "--training.compile"])),
    # The same figures from the commit that they were published for, in TORCHTITAN_SOURCE (a checkout of 9dec370): its wheel of 2025 compiles the loss, too.
    "torchtitan of 2024, 8 cards": (82.4, TITAN + ", table 1", H100_8, ("titan_2024", 8, 1, [])),
    "torchtitan of 2024 compiled, 8 cards": (77.0, TITAN + ", table 1", H100_8, ("titan_2024", 8, 1, ["--training.compile"])),
    "torchtitan of 2024, 128 cards": (67.0, TITAN + ", table 3", H100_128, ("titan_2024", 8, 16, [])),
    "torchtitan of 2024 compiled, 128 cards": (62.0, TITAN + ", table 3", H100_128, ("titan_2024", 8, 16, ["--training.compile"])),
    **{f"torchtitan of 2024 compiled, 8-bit floats, {tokens} tokens over {cards} cards": (published, TITAN + ", table 2", H100_8, ("titan_2024", 8, 1, [
        "--training.compile", *FLOAT8, "--training.batch_size", "1", "--training.seq_len", str(tokens), "--activation_checkpoint.mode", "full",
        "--experimental.context_parallel_degree", str(cards)])) for tokens, cards, published in ((65536, 2, 84.2), (131072, 4, 84.0), (262144, 8, 84.5))},
    "torchtitan of 2024 compiled, 8-bit floats, 70B, tensor parallel 8, 256 cards": (71.9, TITAN + ", table 4", [*H100_128[:-1], "--nodes=32"], ("titan_2024", 8, 32, [
        "--model.flavor", "70B", "--training.compile", *FLOAT8, "--training.batch_size", "16", "--training.tensor_parallel_degree", "8",
        "--activation_checkpoint.mode", "full"])),
    "torchao's baseline, torchtitan of 2024, 8 cards": (47.65, "torchao 0.13, torchao/float8/README.md, none (bfloat16)", H100_8,
                                                        ("titan_2024", 8, 1, ["--training.compile", "--training.batch_size", "1"])),
    # Of my own finding
    "torchtitan of 2024 compiled, 8-bit floats, 8 cards": (76.8, TITAN + ", table 1", H100_8, ("titan_2024", 8, 1, ["--training.compile", *FLOAT8])),
    "torchtitan of 2024 compiled, 8-bit floats, 128 cards": (61.8, TITAN + ", table 3", H100_128, ("titan_2024", 8, 16, ["--training.compile", *FLOAT8])),
    "torchtitan of 2024 compiled, 8-bit floats, 32768 tokens, 8 cards": (83.9, TITAN + ", table 2", H100_8, ("titan_2024", 8, 1, [
        "--training.compile", *FLOAT8, "--training.batch_size", "1", "--training.seq_len", "32768", "--activation_checkpoint.mode", "full"])),
    "torchao's baseline, 8 cards": (47.65, "torchao 0.13, torchao/float8/README.md, none (bfloat16)", H100_8,
                                    ("titan", 8, 1, ["--training.local-batch-size=1", "--training.compile"])),
    "torchtune 70B, offloaded": (13.9, TUNE, A100_8, ("tune", "full_finetune_distributed", "llama3_1/70B_full", LLAMA_70B, [*PACKED, "optimizer.fused=True"])),
    # Of September 2024, whose configuration had LoRA in q, k and v alone.
    "torchtune 70B, LoRA": (27.6, TUNE, A100_8, ("tune", "lora_finetune_distributed", "llama3_1/70B_lora", LLAMA_70B, [
        *PACKED, "model.lora_attn_modules=[q_proj,k_proj,v_proj]", "model.apply_lora_to_mlp=False"])),
    # The README says a batch of 2 for all of its rows; the configuration of 405B of that day says 1.
    "torchtune 70B, LoRA, batch 1": (27.6, TUNE, A100_8, ("tune", "lora_finetune_distributed", "llama3_1/70B_lora", LLAMA_70B, [
        *PACKED, "model.lora_attn_modules=[q_proj,k_proj,v_proj]", "model.apply_lora_to_mlp=False", "batch_size=1"])),
    "torchtune 70B, LoRA, embeddings sharded apart": (27.6, TUNE, A100_8, ("tune", "lora_finetune_distributed", "llama3_1/70B_lora", LLAMA_70B, [
        *PACKED, "model.lora_attn_modules=[q_proj,k_proj,v_proj]", "model.apply_lora_to_mlp=False", "custom_sharded_layers=[tok_embeddings,output]"])),
    "torchtune 405B, QLoRA": (44.8, TUNE, A100_8, ("tune", "lora_finetune_distributed", "llama3_1/405B_qlora", LLAMA_405B, [
        *PACKED, "model.lora_attn_modules=[q_proj,v_proj,k_proj,output_proj]"])),
    "torchtune 405B, QLoRA, batch 1": (44.8, TUNE, A100_8, ("tune", "lora_finetune_distributed", "llama3_1/405B_qlora", LLAMA_405B, [
        *PACKED, "model.lora_attn_modules=[q_proj,v_proj,k_proj,output_proj]", "batch_size=1"])),
    "DeepSpeed ZeRO-3, 7B, batch 2": (20.4, GIST, A100_8, ("zero", 3, 2, True)),
    "DeepSpeed ZeRO-3, 7B, batch 8": (39.1, GIST, A100_8, ("zero", 3, 8, True)),
    "DeepSpeed ZeRO-3, 7B, batch 2, no checkpointing": (75.7, GIST, A100_8, ("zero", 3, 2, False)),
    "DeepSpeed ZeRO-3, 7B, batch 16": (63.9, GIST, A100_8, ("zero", 3, 16, True)),  # told as 8/128
    "DeepSpeed ZeRO-2, 7B, batch 4": (38.6, GIST, A100_8, ("zero", 2, 4, True)),
    "DeepSpeed ZeRO-2, 7B, batch 1": (23.5, GIST, A100_8, ("zero", 2, 1, True)),
    "DeepSpeed ZeRO-2, 7B, batch 1, no checkpointing": (44.8, GIST, A100_8, ("zero", 2, 1, False)),
}  # fmt: skip


def write_tokenizer(path, count):
    with open(path, "w") as file:
        number = 0
        for length in (1, 2, 3):
            for value in range(256**length):
                if number == count:
                    return
                file.write(f"{base64.b64encode(value.to_bytes(length, 'big')).decode()} {number}\n")
                number += 1


def write_text(path, key):
    choose = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz     "
    rows = [{key: "".join(choose.choices(letters, k=800)), "instruction": "".join(choose.choices(letters, k=100)), "input": ""} for _ in range(4000)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_model(folder, model):
    """A file for a hundred tensors each."""
    tensors = list(model.shapes())
    files = [tensors[start : start + 100] for start in range(0, len(tensors), 100)]
    for number, part in enumerate(files, 1):
        write_file(folder / f"model-{number:05}-of-{len(files):05}.safetensors", part)
    model.write_config(folder)
    return len(files)


def python_of(environment):
    return pathlib.Path(subprocess.run([ROOT / "tools/envs", "--path", environment], capture_output=True, text=True, check=True).stdout.strip())


# torchtitan's own llama3_8b.toml (0.1.0), which its wheel leaves out.
TITAN_CONFIGURATION = """
[job]
dump_folder = "./outputs"
description = "Llama 3 8B training"
[profiling]
enable_profiling = true
save_traces_folder = "profile_trace"
profile_freq = 100
[metrics]
log_freq = 10
enable_tensorboard = true
save_tb_folder = "tb"
[model]
name = "llama3"
flavor = "8B"
tokenizer_path = "./tokenizer.model"
[optimizer]
name = "AdamW"
lr = 3e-4
eps = 1e-8
[lr_scheduler]
warmup_steps = 200
[training]
local_batch_size = 1
seq_len = 8192
max_norm = 1.0
steps = 1000
compile = false
dataset = "c4"
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 1
pipeline_parallel_degree = 1
context_parallel_degree = 1
[checkpoint]
enable_checkpoint = false
folder = "checkpoint"
interval = 500
last_save_model_weights_only = false
export_dtype = "float32"
async_mode = "disabled"
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[float8]
enable_fsdp_float8_all_gather = false
precompute_float8_dynamic_scale_for_fsdp = false
filter_fqns = ["output"]
"""


def titan(folder, each, nodes, settings):
    """(command, what its output says the peak is)"""
    (folder / "c4_test").mkdir()
    write_text(folder / "c4_test/data.json", "text")
    write_tokenizer(folder / "tokenizer.model", 128000)
    (folder / "llama3_8b.toml").write_text(TITAN_CONFIGURATION)
    python = python_of("prog-torchtitan")
    meet = ["--nnodes", str(nodes), "--node-rank", "0", "--master-addr", "localhost", "--master-port", "29571"] if nodes > 1 else ["--standalone"]
    return [python, "-m", "torch.distributed.run", *meet, "--nproc-per-node", str(each), "--tee", "3", "-m", "torchtitan.train",
            "--job.config-file", "llama3_8b.toml", "--training.dataset", "c4_test", "--training.dataset-path", "c4_test",
            "--training.steps", "3", "--metrics.log-freq", "1", *settings], r"memory: *([0-9.]+)GiB"  # fmt: skip


def titan_2024(folder, each, nodes, settings):
    command, pattern = titan(folder, each, nodes, [])
    source = pathlib.Path(os.environ["TORCHTITAN_SOURCE"])
    start = [python_of("prog-torchtitan-2024"), *command[1 : command.index("-m", 3)]]
    return [*start, source / "train.py", "--job.config_file", source / "train_configs/llama3_8b.toml", "--model.tokenizer_path", "tokenizer.model",
            "--training.dataset", "c4_test", "--training.dataset_path", "c4_test", "--training.batch_size", "2",
            "--training.steps", "3", "--metrics.log_freq", "1", *settings], pattern  # fmt: skip


def tune(folder, recipe, configuration, model, settings):
    (folder / "model").mkdir()
    files = write_model(folder / "model", model)
    write_text(folder / "data.json", "output")
    write_tokenizer(folder / "model/tokenizer.model", 256)
    python = python_of("prog-torchtune")
    return [python, python.parent / "tune", "run", "--nproc_per_node", "8", recipe, "--config", configuration,
            f"tokenizer.path={folder}/model/tokenizer.model", f"checkpointer.checkpoint_dir={folder}/model",
            f'checkpointer.checkpoint_files={{filename_format: "model-{{}}-of-{{}}.safetensors", max_filename: "{files:05}"}}',
            "dataset.source=json", f"dataset.data_files={folder}/data.json", "max_steps_per_epoch=3", "epochs=1", f"output_dir={folder}/out",
            "log_peak_memory_stats=True", "metric_logger._component_=torchtune.training.metric_logging.StdoutLogger",
            *settings], r"peak_memory_active:([0-9.]+)"  # fmt: skip


def zero(folder, stage, batch, checkpointing):
    (folder / "bin").mkdir()
    compiler = folder / "bin/nvcc"  # DeepSpeed 0.14 asks for its version while it is imported, and compiles nothing here
    compiler.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.4, V12.4.131\n")
    compiler.chmod(0o755)
    return ["env", f"CUDA_HOME={folder}", python_of("prog-published-2024"), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "8", HERE / "zero_llama.py",
            str(stage), str(batch), *["checkpointing"] * checkpointing], r"at most ([0-9.]+)"  # fmt: skip


def run(row, folder):
    _, _, cards, (kind, *words) = ROWS[row]
    command, pattern = {"titan": titan, "titan_2024": titan_2024, "tune": tune, "zero": zero}[kind](folder, *words)
    began = time.monotonic()
    done = subprocess.run(
        [ROOT / "build/bin/tonnage", "run", *cards, "--steps=all", "--seconds=900", f"--json={folder}/report.json", "--", *command],
        cwd=folder, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))  # fmt: skip
    seconds = time.monotonic() - began
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / f"{row.replace(' ', '_').replace(',', '')}.log").write_text(done.stdout + done.stderr)
    told = [float(figure) for figure in re.findall(pattern, done.stdout + done.stderr)]
    return (max(told) if told else None), done.returncode, seconds


def main():
    build = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    rows = {}
    if RESULTS.exists():
        with open(RESULTS, newline="") as file:
            rows = {row["row"]: row for row in csv.DictReader(file)}
    for name in sys.argv[1:] or list(ROWS):
        if "2024" in name and "TORCHTITAN_SOURCE" not in os.environ:
            print(f"{name}: TORCHTITAN_SOURCE is not set", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            found, status, seconds = run(name, pathlib.Path(folder))
        published, source = ROWS[name][:2]
        rows[name] = {"row": name, "published_gib": published, "found_gib": f"{found:.2f}" if found else "",
                      "off_percent": f"{100 * (found / published - 1):+.1f}" if found else "", "status": status, "seconds": f"{seconds:.0f}",
                      "build": build, "source": source}  # fmt: skip
        print(",".join(map(str, rows[name].values())), flush=True)
        with open(RESULTS, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[name]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[key] for key in ROWS if key in rows)


if __name__ == "__main__":
    main()
