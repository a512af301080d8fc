"""Trains GPT-2 small by the Trainer of transformers, with its defaults: a checkpoint at the end of each epoch, with the
optimizer's state, and the model once more at the end.
"""
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Lines(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        tokens = torch.randint(50257, (512,))
        return {"input_ids": tokens, "labels": tokens.clone()}


model = GPT2LMHeadModel(GPT2Config())
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=8,
    num_train_epochs=1,
    logging_steps=1,
    save_strategy="epoch",
    eval_strategy="epoch",
    report_to="none",
)
trainer = Trainer(model=model, args=arguments, train_dataset=Lines(), eval_dataset=Lines())
trainer.train()
trainer.save_model("out/final")
