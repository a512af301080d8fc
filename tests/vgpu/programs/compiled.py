"""A compiled model, trained; tells how often Inductor found its code in its cache."""

import torch
from torch._dynamo.utils import counters


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(256, 1 << 14)
        self.second = torch.nn.Linear(1 << 14, 8)

    def forward(self, x):
        y = self.first(x)
        y = torch.nn.functional.gelu(y)
        return self.second(y).sum()


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model)
for _ in range(4):
    compiled(torch.ones(2048, 256, device="cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()
print("hits", counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"])
