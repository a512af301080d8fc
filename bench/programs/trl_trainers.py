# SPDX-License-Identifier: Apache-2.0
"""Trainers of trl on a checkpoint of true size: sft, sft_lora, dpo, grpo, reward."""

import sys

from datasets import Dataset
from made import texts
from transformers import PreTrainedTokenizerFast

kind, model = sys.argv[1:3]
# Named, since transformers rebuilds a qwen2 model's tokenizer as one of Qwen's own kind.
TOKENIZER = PreTrainedTokenizerFast.from_pretrained(model)
COMMON = {"output_dir": "out", "report_to": [], "max_steps": 12, "logging_steps": 2, "per_device_train_batch_size": 2,
          "bf16": True, "gradient_checkpointing": True, "model_init_kwargs": {"dtype": "float32"}}  # fmt: skip


def pairs():
    rows = zip(texts(80, 100), texts(80, 100, 1), texts(80, 100, 2))
    return Dataset.from_list([{"prompt": p, "chosen": p + " " + a, "rejected": p + " " + b} for p, a, b in rows])


def sft():
    from trl import SFTConfig, SFTTrainer

    data = Dataset.from_list([{"text": text} for text in texts(80, 600)])
    return SFTTrainer(model=model, processing_class=TOKENIZER, args=SFTConfig(**COMMON, max_length=512), train_dataset=data)


def sft_lora():
    from peft import LoraConfig
    from trl import SFTConfig, SFTTrainer

    data = Dataset.from_list([{"text": text} for text in texts(80, 600)])
    settings = {**COMMON, "per_device_train_batch_size": 4, "model_init_kwargs": {"dtype": "bfloat16"}}
    lora = LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    return SFTTrainer(model=model, processing_class=TOKENIZER, args=SFTConfig(**settings, max_length=512), train_dataset=data, peft_config=lora)


def dpo():
    from trl import DPOConfig, DPOTrainer

    return DPOTrainer(model=model, processing_class=TOKENIZER, args=DPOConfig(**COMMON, max_length=512), train_dataset=pairs())


def grpo():
    from trl import GRPOConfig, GRPOTrainer

    def length(completions, **_):
        return [float(len(text)) for text in completions]

    settings = {**COMMON, "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 64}
    data = Dataset.from_list([{"prompt": text} for text in texts(80, 60)])
    return GRPOTrainer(model=model, processing_class=TOKENIZER, reward_funcs=length, args=GRPOConfig(**settings), train_dataset=data)


def reward():
    from trl import RewardConfig, RewardTrainer

    return RewardTrainer(model=model, processing_class=TOKENIZER, args=RewardConfig(**COMMON, max_length=512), train_dataset=pairs())


if __name__ == "__main__":
    trainer = globals()[kind]()
    trainer.train()
    trainer.save_model()
    print("finished", kind)
