# SPDX-License-Identifier: Apache-2.0
"""unsloth: a 4-bit base with LoRA, trained by trl's SFTTrainer."""

import sys

import unsloth  # noqa: F401  first, as it asks
from datasets import Dataset
from made import texts
from trl import SFTConfig, SFTTrainer
from unsloth import FastLanguageModel

model, tokenizer = FastLanguageModel.from_pretrained(sys.argv[1], max_seq_length=1024, load_in_4bit=True)
model = FastLanguageModel.get_peft_model(
    model, r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    use_gradient_checkpointing="unsloth")  # fmt: skip
data = Dataset.from_list([{"text": text} for text in texts(64, 700)])
settings = SFTConfig(output_dir="out", max_length=1024, per_device_train_batch_size=2, gradient_accumulation_steps=4, max_steps=8,
                     optim="adamw_8bit", report_to=[], logging_steps=1, dataset_text_field="text")  # fmt: skip
SFTTrainer(model=model, processing_class=tokenizer, train_dataset=data, args=settings).train()
print("finished")
