"""Shows how detach() and backward() work, the way some articles do.

Wrong: nothing in it requires a gradient. backward() raises a RuntimeError, on any card.
"""

import torch

x = torch.randn(1000, 1000, device="cuda")
y = (x * 2).sum()
y.backward()  # <- the mistake
print(x.grad)
