# SPDX-License-Identifier: Apache-2.0
"""Trainer.hyperparameter_search, with Optuna."""

import sys

import torch
import transformers

LENGTH = 64


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        ids = torch.full((LENGTH,), 5 + index % 50)
        return {"input_ids": ids, "labels": ids}


made = []


def make(trial):
    config = transformers.GPT2Config(n_embd=512, n_layer=8, n_head=8, vocab_size=8192, n_positions=LENGTH)
    model = transformers.GPT2LMHeadModel(config)
    if "keep" in sys.argv:
        made.append(model)
    return model


arguments = transformers.TrainingArguments(
    output_dir="out", per_device_train_batch_size=8, num_train_epochs=1, report_to=[], save_strategy="no", eval_strategy="epoch")
trainer = transformers.Trainer(args=arguments, model_init=make, train_dataset=Data(), eval_dataset=Data())
best = trainer.hyperparameter_search(
    hp_space=lambda trial: {"learning_rate": trial.suggest_float("learning_rate", 1e-5, 1e-3)},
    backend="optuna", n_trials=4, direction="minimize")
print(best.objective)
