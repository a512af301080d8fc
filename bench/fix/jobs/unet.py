"""A U-Net of the size of Stable Diffusion's, at the heart of a latent diffusion model: 64 x 64 latents, attention to a text."""
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

WIDTHS, TEXT = (320, 640, 1280, 1280), 768


class Residual(nn.Module):
    def __init__(self, inner, outer, time=1280):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, inner), nn.SiLU(), nn.Conv2d(inner, outer, 3, padding=1))
        self.time = nn.Linear(time, outer)
        self.second = nn.Sequential(nn.GroupNorm(32, outer), nn.SiLU(), nn.Conv2d(outer, outer, 3, padding=1))
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x, time):
        return self.skip(x) + self.second(self.first(x) + self.time(time)[:, :, None, None])


class Attention(nn.Module):
    def __init__(self, width, heads=8):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own = nn.MultiheadAttention(width, heads, batch_first=True)
        self.text = nn.MultiheadAttention(width, heads, kdim=TEXT, vdim=TEXT, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, text):
        batch, width, height, length = x.shape
        y = x.flatten(2).transpose(1, 2)
        z = self.norms[0](y)
        y = y + self.own(z, z, z, need_weights=False)[0]
        y = y + self.text(self.norms[1](y), text, text, need_weights=False)[0]
        y = y + self.feed(self.norms[2](y))
        return y.transpose(1, 2).reshape(batch, width, height, length)


class Level(nn.Module):
    def __init__(self, inner, outer, attend):
        super().__init__()
        self.residual = Residual(inner, outer)
        self.attention = Attention(outer) if attend else None

    def forward(self, x, time, text):
        x = self.residual(x, time)
        return x if self.attention is None else self.attention(x, text)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(320, 1280), nn.SiLU(), nn.Linear(1280, 1280))
        self.begin = nn.Conv2d(4, WIDTHS[0], 3, padding=1)
        self.down, self.smaller, self.up, self.larger = (nn.ModuleList() for _ in range(4))
        kept, width = [WIDTHS[0]], WIDTHS[0]
        for place, wide in enumerate(WIDTHS):
            last = place == len(WIDTHS) - 1
            for _ in range(2):
                self.down.append(Level(width, wide, not last))
                width = wide
                kept.append(wide)
            if not last:
                self.smaller.append(nn.Conv2d(wide, wide, 3, stride=2, padding=1))
                kept.append(wide)
        self.middle = nn.ModuleList([Level(width, width, True), Level(width, width, False)])
        for place, wide in reversed(list(enumerate(WIDTHS))):
            for _ in range(3):
                self.up.append(Level(width + kept.pop(), wide, place < len(WIDTHS) - 1))
                width = wide
            if place > 0:
                self.larger.append(nn.Conv2d(wide, wide, 3, padding=1))
        self.end = nn.Sequential(nn.GroupNorm(32, width), nn.SiLU(), nn.Conv2d(width, 4, 3, padding=1))

    def forward(self, x, time, text):
        time = self.time(time)
        x = self.begin(x)
        kept = [x]
        for place in range(len(WIDTHS)):
            for level in self.down[2 * place:2 * place + 2]:
                x = level(x, time, text)
                kept.append(x)
            if place < len(self.smaller):
                x = self.smaller[place](x)
                kept.append(x)
        for level in self.middle:
            x = level(x, time, text)
        for place in range(len(WIDTHS)):
            for level in self.up[3 * place:3 * place + 3]:
                x = level(torch.cat((x, kept.pop()), 1), time, text)
            if place < len(self.larger):
                x = self.larger[place](functional.interpolate(x, scale_factor=2.0))
        return self.end(x)


data = TensorDataset(torch.zeros(400, 4, 64, 64), torch.zeros(400, 77, TEXT))
model = UNet().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for latents, text in DataLoader(data, batch_size=8, shuffle=True):
    latents, text = latents.cuda(), text.cuda()
    noise, time = torch.randn_like(latents), torch.randn(len(latents), 320, device="cuda")
    loss = functional.mse_loss(model(latents + noise, time, text), noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"loss {loss.item():.3f}")
