"""Trains a DCGAN on 304 pictures of 128 by 128 at a time and draws pictures after every tenth step.

Wrong: the drawn pictures are made with gradients on, by a model that stays in train(), so no evaluation is seen. `drawn` holds their graph
through the next step: 4 GiB more than a step needs. A 12 GB card runs out there; with --no-grad it fits.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--no-grad", action="store_true")
options = parser.parse_args()


def up(inputs, outputs):
    return nn.Sequential(nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


def down(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2))


generator = nn.Sequential(nn.ConvTranspose2d(100, 1024, 4, bias=False), nn.BatchNorm2d(1024), nn.ReLU(), up(1024, 512), up(512, 256),
                          up(256, 256), up(256, 128), up(128, 64), nn.Conv2d(64, 3, 3, padding=1), nn.Tanh()).cuda()  # fmt: skip
discriminator = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), down(64, 128), down(128, 256), down(256, 512), down(512, 512), nn.Conv2d(512, 1, 4),
                              nn.Flatten()).cuda()  # fmt: skip
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
pictures = torch.zeros(304, 3, 128, 128)  # your pictures
same_noise = torch.zeros(304, 100, 1, 1).cuda()

for step in range(40):
    real, noise = pictures.cuda(), torch.randn(304, 100, 1, 1, device="cuda")
    made = generator(noise)  # <- out of memory
    is_real, is_made = discriminator(real), discriminator(made.detach())
    optimizer_d.zero_grad()
    (F.softplus(-is_real).mean() + F.softplus(is_made).mean()).backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    F.softplus(-discriminator(made)).mean().backward()
    optimizer_g.step()
    if step % 10 == 0:
        with torch.set_grad_enabled(not options.no_grad):
            drawn = generator(same_noise)  # <- the mistake
        print("step", step, "brightness of what was drawn", drawn.mean().item())
