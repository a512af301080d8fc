# SPDX-License-Identifier: Apache-2.0
"""fair-esm: ESM-2 of 650 M parameters reads 16 proteins of 510 residues."""

import random

import esm
import torch

alphabet = esm.data.Alphabet.from_architecture("ESM-1b")
model = esm.model.esm2.ESM2(num_layers=33, embed_dim=1280, attention_heads=20, alphabet=alphabet).cuda().eval()
choose = random.Random(0)
proteins = [(f"p{number}", "".join(choose.choices("ACDEFGHIKLMNPQRSTVWY", k=510))) for number in range(16)]
_, _, tokens = alphabet.get_batch_converter()(proteins)
with torch.no_grad():
    found = model(tokens.cuda(), repr_layers=[33], return_contacts=False)
print(tuple(found["representations"][33].shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
