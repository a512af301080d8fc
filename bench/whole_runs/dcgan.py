# SPDX-License-Identifier: Apache-2.0
"""A convolutional GAN: two optimizers, 25 epochs, made pictures, checkpoints of both nets after each epoch."""

import torch
import torchvision
from torch import nn
from torchvision import transforms

WIDTH, NOISE = 64, 100


def up(inputs, outputs, *options):
    return [nn.ConvTranspose2d(inputs, outputs, 4, *options, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)]


def down(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2, True)]


generator = nn.Sequential(*up(NOISE, WIDTH * 8, 1, 0), *up(WIDTH * 8, WIDTH * 4, 2, 1), *up(WIDTH * 4, WIDTH * 2, 2, 1),
                          *up(WIDTH * 2, WIDTH, 2, 1), nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1), nn.Tanh()).cuda()  # fmt: skip
critic = nn.Sequential(nn.Conv2d(3, WIDTH, 4, 2, 1), nn.LeakyReLU(0.2, True), *down(WIDTH, WIDTH * 2),
                       *down(WIDTH * 2, WIDTH * 4), *down(WIDTH * 4, WIDTH * 8), nn.Conv2d(WIDTH * 8, 1, 4),
                       nn.Flatten(0)).cuda()  # fmt: skip
scaled = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])
pictures = torchvision.datasets.FakeData(10000, (3, 64, 64), 10, scaled)
loader = torch.utils.data.DataLoader(pictures, batch_size=64, shuffle=True, num_workers=2)
criterion = nn.BCEWithLogitsLoss()
of_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
for epoch in range(25):
    for real, _ in loader:
        real = real.cuda()
        ones, zeros = torch.ones(len(real), device="cuda"), torch.zeros(len(real), device="cuda")
        made = generator(torch.randn(len(real), NOISE, 1, 1, device="cuda"))
        critic.zero_grad()
        loss = criterion(critic(real), ones) + criterion(critic(made.detach()), zeros)
        loss.backward()
        of_critic.step()
        generator.zero_grad()
        criterion(critic(made), ones).backward()
        of_generator.step()
    print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    torch.save(generator.state_dict(), f"generator_{epoch}.pt")
    torch.save(critic.state_dict(), f"critic_{epoch}.pt")
