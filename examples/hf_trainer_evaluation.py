"""Trains a small GPT with transformers' Trainer and evaluates it with a metric of its own.

Wrong: for compute_metrics the Trainer gathers all logits on the card, 0.4 GiB a batch, 20 GiB in all; a 12 GB card runs
out in the evaluation. With --argmax (preprocess_logits_for_metrics) it fits.
"""

import argparse

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--argmax", action="store_true")
options = parser.parse_args()


class Texts(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        tokens = torch.randint(50257, (256,))
        return {"input_ids": tokens, "labels": tokens.clone()}


def right(prediction):
    return {"right": (prediction.predictions == prediction.label_ids).mean()}


arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    num_train_epochs=1,
    eval_strategy="epoch",
    save_strategy="no",
    report_to="none",
)
trainer = Trainer(
    model=GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=4)),
    args=arguments,
    train_dataset=Texts(),
    eval_dataset=Texts(),
    compute_metrics=right,
    preprocess_logits_for_metrics=(lambda logits, labels: logits.argmax(-1)) if options.argmax else None,
)
trainer.train()  # <- out of memory
