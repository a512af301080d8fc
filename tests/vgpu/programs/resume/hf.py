"""transformers' Trainer, and again from its last checkpoint; `held`: the program has loaded that itself before."""

import sys

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


class Lines(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        tokens = torch.arange(64) % 50257
        return {"input_ids": tokens, "labels": tokens.clone()}


resume = len(sys.argv) > 1
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=512, n_head=8))
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=4, num_train_epochs=4 if resume else 2,
                              save_strategy="epoch", report_to="none", logging_steps=1)
trainer = Trainer(model=model, args=arguments, train_dataset=Lines())
if sys.argv[1:] == ["held"]:
    from safetensors.torch import load_file

    weights = load_file(get_last_checkpoint("out") + "/model.safetensors", device="cuda")
    model.load_state_dict(weights, strict=False)
trainer.train(resume_from_checkpoint=resume)
