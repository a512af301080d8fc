# SPDX-License-Identifier: Apache-2.0
"""Rebuilds the training loop of one row of measured.csv (README.md says how it ran): four iterations, fp32, the
optimizer's defaults, names that live until they are overwritten.

    python job.py MODEL OPTIMIZER BATCH VARIANT [LENGTH,LENGTH,LENGTH,LENGTH]
    python job.py --count            compare the models' parameter counts, without a GPU

VARIANT says when the gradients are dropped: 0 at the top of the iteration, 1 between forward and backward, 2 at its
end.
"""

import sys

import torch
from models import ALWAYS_FULL, CONVOLUTIONAL, PARAMETERS, TRANSFORMERS, build

LENGTH = 128


def count():
    """Prints each model's number of parameters beside the expected one; returns how many differ."""
    wrong = 0
    for name, expected in PARAMETERS.items():
        with torch.device("cpu" if name in CONVOLUTIONAL else "meta"):  # RegNet computes while it is built
            found = sum(parameter.numel() for parameter in build(name).parameters())
        print(f"{name:45} {found:13,} {'' if found == expected else f'expected {expected:,}'}")
        wrong += found != expected
    return wrong


def make_optimizer(name, parameters):
    if name == "Adafactor":  # only this class takes the argument that the measured loop passed
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=0.001, relative_step=False)
    return getattr(torch.optim, name)(parameters, lr=0.001)


def token_batches(name, batch, lengths):
    """Batches as the collator makes them: lines of random lengths, padded to the longest, pads masked."""
    _, figures = TRANSFORMERS[name]
    vocabulary = figures.get("vocab_size", 50257)
    for length in lengths:
        ids = torch.randint(vocabulary, (batch, length))
        line_lengths = torch.randint(1, length + 1, (batch, 1))
        if name not in ALWAYS_FULL:
            line_lengths[0] = length  # the longest line of the batch
        mask = (torch.arange(length) < line_lengths).long()
        yield {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def picture_batches(batch, classes):
    for _ in range(4):
        yield torch.zeros(batch, 3, 86, 86), torch.randint(classes, (batch,))


def train_transformer(name, optimizer_name, batch, variant, lengths):
    model = build(name)
    optimizer = make_optimizer(optimizer_name, model.parameters())
    model.to("cuda").train()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.1)
    for data in token_batches(name, batch, lengths):
        if variant == 0:
            optimizer.zero_grad()
        inputs = {key: value.to("cuda") for key, value in data.items()}
        outputs = model(**inputs)
        loss = outputs.loss
        if variant == 1:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if variant == 2:
            optimizer.zero_grad()


def train_convolutional(name, optimizer_name, batch, variant):
    model = build(name).to("cuda").train()
    optimizer = make_optimizer(optimizer_name, model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.1)
    loss_function = torch.nn.CrossEntropyLoss()
    for data, targets in picture_batches(batch, CONVOLUTIONAL[name][1]):
        data, targets = data.to("cuda"), targets.to("cuda")
        if variant == 0:
            optimizer.zero_grad()
        outputs = model(data)
        loss = loss_function(outputs, targets)
        if variant == 1:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if variant == 2:
            optimizer.zero_grad()
        predicted = outputs.argmax(1)  # noqa: F841 (kept alive, as there)


def main(words):
    if words == ["--count"]:
        return count()
    name, optimizer, batch, variant = words[0], words[1], int(words[2]), int(words[3])
    torch.cuda.set_per_process_memory_fraction(1.0)
    if name in CONVOLUTIONAL:
        train_convolutional(name, optimizer, batch, variant)
    else:
        lengths = [int(word) for word in words[4].split(",")] if len(words) > 4 else [LENGTH] * 4
        train_transformer(name, optimizer, batch, variant, lengths)
    print("reserved", torch.cuda.max_memory_reserved(), "allocated", torch.cuda.max_memory_allocated())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
