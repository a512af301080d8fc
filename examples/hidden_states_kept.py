"""Computes the features of 100,000 texts with BERT and keeps them for a classifier.

Wrong: the hidden states of all 13 layers stay on the card, 0.6 GiB for each batch; a 12 GB card runs out at about the
18th.
"""

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel

model = BertModel(BertConfig()).cuda().eval()
texts = torch.randint(30_000, (100_000, 256))
features = []
with torch.no_grad():
    for tokens in DataLoader(texts, batch_size=64):
        output = model(tokens.cuda(), output_hidden_states=True)  # <- out of memory
        features.append(output.hidden_states)  # <- the mistake
