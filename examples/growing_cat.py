"""Computes the features of 9,600 texts with BERT and appends each batch to one tensor.

Wrong: torch.cat copies all that is there into a new tensor every time, so it needs twice 7 GiB. A 12 GB card runs out
half way through; written into one tensor that was made before (--preallocate) it fits.
"""

import argparse

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel

parser = argparse.ArgumentParser()
parser.add_argument("--preallocate", action="store_true")
options = parser.parse_args()

model = BertModel(BertConfig(num_hidden_layers=2)).cuda().eval()
texts = torch.randint(30_000, (9_600, 256))
features = torch.empty(len(texts) if options.preallocate else 0, 256, 768, device="cuda")
with torch.no_grad():
    for number, tokens in enumerate(DataLoader(texts, batch_size=96)):
        states = model(tokens.cuda()).last_hidden_state
        if options.preallocate:
            features[number * 96 : (number + 1) * 96] = states
        else:
            features = torch.cat([features, states])  # <- out of memory
print(features.shape)
