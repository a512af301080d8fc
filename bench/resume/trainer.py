# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer on a small GPT-2.

    trainer.py                  train, with a checkpoint after each epoch
    trainer.py --resume         go on from the last one
    trainer.py --resume --warm  the same, and load its weights first, to say how many layers they have
    trainer.py --resume --adam  the same, with an optimizer of our own that has been given its state
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
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--adam", action="store_true")
    options = parser.parse_args()

    model = GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=1024, n_head=16, vocab_size=8192, n_positions=256))
    arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=2, num_train_epochs=4 if options.resume else 2,
                                  save_strategy="epoch", report_to="none", logging_steps=1, optim="adamw_torch_fused")
    last = get_last_checkpoint("out") if options.resume else None
    optimizer = None
    if options.warm:
        weights = load_file(last + "/model.safetensors", device="cuda")
        missing, unexpected = model.load_state_dict(weights, strict=False)
        print(len(weights), "tensors,", len(missing), "missing,", len(unexpected), "unexpected")
    if options.adam:
        model.cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
        saved = torch.load(last + "/optimizer.pt", map_location="cuda")
        optimizer.load_state_dict(saved)
        print("state of", len(saved["state"]), "tensors")
    trainer = Trainer(model=model, args=arguments, train_dataset=Lines(), optimizers=(optimizer, None))
    trainer.train(resume_from_checkpoint=last)


if __name__ == "__main__":
    main()
