# attention that is written out: scores before the mask, after it, after the softmax and after dropout, in each layer
import torch


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.maps, self.out = torch.nn.Linear(512, 1536), torch.nn.Linear(512, 512)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (8, 64)).transpose(1, 2) for part in self.maps(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) * .125
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device="cuda").triu(1)
        weights = torch.nn.functional.dropout(scores.masked_fill(later, -1e9).softmax(-1), .1)
        return x + self.out((weights @ v).transpose(1, 2).flatten(2))


model = torch.nn.Sequential(*(Attention() for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(4, 1024, 512, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
