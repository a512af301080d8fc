# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer on a small GPT-2.

    trainer.py                  train, with a checkpoint after each epoch
    trainer.py --resume         go on from the last one
    trainer.py --resume --warm  the same, and load its weights first, to say how many layers they have
    trainer.py --resume --adam  the same, and give the optimizer its state, to say how many tensors have one
"""

import argparse

import torch
from safetensors.torch import load_file
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


class Lines(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        tokens = torch.arange(256) % 8192
        return {"input_ids": tokens, "labels": tokens.clone()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--adam", action="store_true")
    options = parser.parse_args()

    model = GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=1024, n_head=16, vocab_size=8192, n_positions=256))
    arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=2, num_train_epochs=options.epochs,
                                  save_strategy="epoch", report_to="none", logging_steps=1, optim="adamw_torch_fused")
    last = get_last_checkpoint("out") if options.resume else None
    if options.warm:
        weights = load_file(last + "/model.safetensors", device="cuda")
        missing, unexpected = model.load_state_dict(weights, strict=False)
        print(len(weights), "tensors,", len(missing), "missing,", len(unexpected), "unexpected")
    trainer = Trainer(model=model, args=arguments, train_dataset=Lines())
    if options.adam:
        trainer.create_optimizer()
        saved = torch.load(last + "/optimizer.pt", map_location="cuda")
        trainer.optimizer.load_state_dict(saved)
        print("state of", len(saved["state"]), "tensors")
    trainer.train(resume_from_checkpoint=last)


if __name__ == "__main__":
    main()
