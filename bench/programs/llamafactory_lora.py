# SPDX-License-Identifier: Apache-2.0
"""LLaMA-Factory: `llamafactory-cli train` with LoRA on a local checkpoint."""

import json
import os
import pathlib
import sys

from made import texts

rows = [{"instruction": text[:200], "input": "", "output": text} for text in texts(128, 300)]
pathlib.Path("data").mkdir()
pathlib.Path("data/made.json").write_text(json.dumps(rows))
pathlib.Path("data/dataset_info.json").write_text(json.dumps({"made": {"file_name": "made.json"}}))
pathlib.Path("lora.yaml").write_text(f"""model_name_or_path: {sys.argv[1]}
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
dataset: made
dataset_dir: data
template: default
cutoff_len: 512
output_dir: out
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
learning_rate: 1.0e-4
max_steps: 10
logging_steps: 2
bf16: true
report_to: none
preprocessing_num_workers: 1
""")
os.execvp("llamafactory-cli", ["llamafactory-cli", "train", "lora.yaml"])
