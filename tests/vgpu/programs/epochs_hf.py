# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer over three epochs of 10,000 batches. Argument: when it evaluates and saves (epoch, steps)."""

import os
import sys

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        ids = torch.zeros(32, dtype=torch.long)
        return {"input_ids": ids, "labels": ids}


net = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=1000))
arguments = TrainingArguments("out", num_train_epochs=3, per_device_train_batch_size=4, eval_strategy=sys.argv[1],
                              save_strategy=sys.argv[1], report_to=[], disable_tqdm=True)  # fmt: skip
trainer = Trainer(net, arguments, train_dataset=Tokens(40000), eval_dataset=Tokens(20000))
trainer.train()
print("checkpoints", len(os.listdir("out")))
print("evaluated", "eval_loss" in trainer.evaluate())
