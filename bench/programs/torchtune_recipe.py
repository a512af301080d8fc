# SPDX-License-Identifier: Apache-2.0
"""torchtune on Llama 3.2 1B's size: one of its recipes and configurations, pointed at made files: lora or full."""

import base64
import json
import os
import pathlib
import sys

from made import texts

kind, model = sys.argv[1:3]
pathlib.Path("tokenizer.model").write_text(
    "".join(f"{base64.b64encode(bytes([value])).decode()} {value}\n" for value in range(256))
)
pathlib.Path("data.json").write_text(json.dumps([{"instruction": text[:200], "input": "", "output": text} for text in texts(64, 60)]))
recipe = {"lora": "lora_finetune_single_device", "full": "full_finetune_single_device"}[kind]
settings = [
    "tokenizer.path=tokenizer.model", "tokenizer.max_seq_len=512", f"checkpointer.checkpoint_dir={model}",
    "checkpointer.checkpoint_files=[model.safetensors]", "dataset._component_=torchtune.datasets.alpaca_dataset",
    "dataset.source=json", "dataset.data_files=data.json", "dataset.packed=False", "batch_size=2", "max_steps_per_epoch=8",
    "epochs=1", "output_dir=out", "gradient_accumulation_steps=1", "compile=False", "enable_activation_checkpointing=True",
    "metric_logger._component_=torchtune.training.metric_logging.StdoutLogger"]  # fmt: skip
if kind == "full":
    settings += ["optimizer._component_=torch.optim.AdamW", "optimizer.fused=True", "optimizer_in_bwd=False"]
config = f"llama3_2/1B_{kind}_single_device"
os.execvp("tune", ["tune", "run", recipe, "--config", config, *settings])
