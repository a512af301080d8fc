# SPDX-License-Identifier: Apache-2.0
"""trainer.py FOLDER images|tokens|photographs WORKERS: transformers' Trainer, on images of a folder, on saved tokens, padded to the longest of a batch, or on
images that a saved data set holds."""

import sys

import numpy
import torch
from datasets import load_dataset, load_from_disk
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

folder, kind, workers = sys.argv[1:]


def to_pixels(rows):
    images = [numpy.asarray(image.convert("RGB").resize((64, 64)), dtype=numpy.float32) / 255 for image in rows["image"]]
    return {"pixel_values": [torch.from_numpy(image).permute(2, 0, 1) for image in images], "labels": rows["label"]}


def padded(rows):
    tokens = [torch.tensor(row["input_ids"]) for row in rows]
    return {"input_ids": pad_sequence(tokens, batch_first=True), "labels": torch.tensor([row["labels"] for row in rows])}


small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
if kind == "tokens":
    data, collate = load_from_disk(f"{folder}/tokens"), padded
    model = BertForSequenceClassification(BertConfig(vocab_size=1000, max_position_embeddings=512, **small))
else:
    data = load_dataset("imagefolder", data_dir=f"{folder}/images")["train"] if kind == "images" else load_from_disk(f"{folder}/photographs")
    data, collate = data.with_transform(to_pixels), None
    model = ViTForImageClassification(ViTConfig(image_size=64, patch_size=16, **small))
options = TrainingArguments("out", per_device_train_batch_size=8, num_train_epochs=1, max_steps=40, report_to="none", seed=1, remove_unused_columns=False,
                            dataloader_num_workers=int(workers), save_strategy="no")  # fmt: skip
Trainer(model, options, train_dataset=data, data_collator=collate).train()
print("rows", len(data))
