"""Prints how much memory is in use after a matrix product.

Wrong: torch.cuda.memory_cached has long been called memory_reserved. PyTorch 2.6 to 2.15 say so in a FutureWarning: it
fits.
"""

import torch

a = torch.randn(4096, 4096, device="cuda")
b = a @ a
print("allocated", torch.cuda.memory_allocated())
print("cached", torch.cuda.memory_cached())  # <- the mistake
