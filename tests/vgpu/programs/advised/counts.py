# a detector's manner: eight passes before training begins, to see whether they work, and a batch that is a list of six
# pictures of different sizes
import torch


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Conv2d(3 if i == 0 else 32, 32, 3, padding=1) for i in range(8)))

    def forward(self, pictures):
        high, wide = (max(picture.shape[side] for picture in pictures) for side in (1, 2))
        batch = torch.stack([torch.nn.functional.pad(p, (0, wide - p.shape[2], 0, high - p.shape[1])) for p in pictures])
        return self.layers(batch)


model = Detector().cuda()
for step in range(8):
    with torch.no_grad():
        model([torch.zeros(3, 64, 64, device="cuda")])
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for step in range(3):
    model([torch.randn(3, 480 + 32 * i, 640, device="cuda") for i in range(6)]).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
