# SPDX-License-Identifier: Apache-2.0
"""Forty epochs of GPT-2 (124 M) by Hugging Face's Trainer on made tokens, with an evaluation and a checkpoint each."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        ids = torch.randint(50257, (512,))
        return {"input_ids": ids, "labels": ids}


model = GPT2LMHeadModel(GPT2Config())
arguments = TrainingArguments("out", num_train_epochs=40, per_device_train_batch_size=4, eval_strategy="epoch",
                              save_strategy="epoch", save_total_limit=2, dataloader_num_workers=2, bf16=True,
                              report_to=[], disable_tqdm=True)  # fmt: skip
Trainer(model, arguments, train_dataset=Tokens(20000), eval_dataset=Tokens(2000)).train()
