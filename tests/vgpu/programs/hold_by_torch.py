"""Holds a gibibyte by PyTorch; with an argument for a minute."""

import sys
import time

import torch

x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
print("held", flush=True)
time.sleep(60 if len(sys.argv) > 1 else 0)
