"""Bytes that go to the device and straight back come back; so do constants."""
import torch

values = torch.arange(1000, dtype=torch.float32)
assert torch.equal(values.cuda().cpu(), values)
assert torch.tensor([1, 2, 3], device="cuda").tolist() == [1, 2, 3]
assert torch.zeros(5, device="cuda").tolist() == [0.0] * 5
pinned = torch.rand(100).pin_memory()
assert torch.equal(pinned.to("cuda", non_blocking=True).cpu(), pinned)
print("round trips are exact")
