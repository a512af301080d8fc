# SPDX-License-Identifier: Apache-2.0
"""Writes a configuration and a data set for `axolotl train`, and calls it: QLoRA on a local checkpoint."""

import json
import os
import pathlib
import sys

from made import texts

model = sys.argv[1]
pathlib.Path("data.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts(200, 500)))
pathlib.Path("qlora.yaml").write_text(f"""base_model: {model}
load_in_4bit: true
adapter: qlora
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_linear: true
datasets:
  - path: data.jsonl
    ds_type: json
    type: completion
dataset_prepared_path: prepared
output_dir: out
sequence_len: 1024
sample_packing: false
pad_to_sequence_len: true
micro_batch_size: 2
gradient_accumulation_steps: 2
max_steps: 10
num_epochs: 1
optimizer: paged_adamw_8bit
learning_rate: 0.0002
bf16: true
gradient_checkpointing: true
attn_implementation: sdpa
val_set_size: 0.05
save_first_step: false
""")
os.execvp("axolotl", ["axolotl", "train", "qlora.yaml"])
