# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer on a causal language model of true size, by its own arguments."""

import dataclasses

import torch
from transformers import AutoConfig, AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclasses.dataclass
class Options:
    kind: str = "gpt2"
    length: int = 512
    count: int = 400
    modules: str = ""  # for optimizers that work on named modules


class Tokens(torch.utils.data.Dataset):
    def __init__(self, count, length, vocabulary):
        self.rows = torch.randint(5, vocabulary, (count, length))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main():
    options, training = HfArgumentParser([Options, TrainingArguments]).parse_args_into_dataclasses()
    training.report_to = []
    if options.modules:
        training.optim_target_modules = options.modules.split(",")
    if options.kind == "gpt2":
        config = AutoConfig.for_model("gpt2")
    else:  # the size of Qwen2.5-0.5B
        config = AutoConfig.for_model(
            "qwen2", vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
            num_key_value_heads=2, tie_word_embeddings=True)  # fmt: skip
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    trainer = Trainer(model, training, train_dataset=Tokens(options.count, options.length, config.vocab_size))
    trainer.train()
    trainer.save_model()


main()
