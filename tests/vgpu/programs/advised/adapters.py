# LoRA by hand: a frozen model in 16 bits that is too large for the card, and small matrices beside it that are trained
import torch


class Adapted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = torch.nn.Linear(4096, 4096, dtype=torch.bfloat16).requires_grad_(False)
        self.down, self.up = (torch.nn.Linear(*shape, bias=False) for shape in ((4096, 8), (8, 4096)))

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x.float())).bfloat16()


model = torch.nn.Sequential(*(Adapted() for _ in range(48))).cuda()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-4)
for step in range(3):
    model(torch.randn(256, 4096, device="cuda", dtype=torch.bfloat16)).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
