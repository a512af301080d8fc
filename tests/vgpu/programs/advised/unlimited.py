# sizes itself by the card: on another one it is another program, and what it would need there says nothing of this one
import torch

total = torch.cuda.get_device_properties(0).total_memory
if total > 64 << 30:
    raise SystemExit("this program is written for small cards")
layers = torch.nn.ModuleList(torch.nn.Linear(2048, 2048) for _ in range(total >> 24)).cuda()
x = torch.randn(2048, 2048, device="cuda")
for layer in layers:
    x = layer(x)
x.mean().backward()
