import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def up(inputs, outputs, stride=2, padding=1):
    return nn.Sequential(
        nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)
    )


def down(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2, True)
    )


generator = nn.Sequential(
    up(100, 512, 1, 0), up(512, 256), up(256, 128), up(128, 64), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()
).to(device)
discriminator = nn.Sequential(
    down(3, 64), down(64, 128), down(128, 256), down(256, 512), nn.Conv2d(512, 1, 4), nn.Flatten(0)
).to(device)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
loss_function = nn.BCEWithLogitsLoss()
ones = torch.ones(256, device=device)
zeros = torch.zeros(256, device=device)

for step in range(4):
    real = torch.rand(256, 3, 64, 64).to(device) * 2 - 1
    fake = generator(torch.randn(256, 100, 1, 1, device=device))

    discriminator_optimizer.zero_grad()
    loss_real = loss_function(discriminator(real), ones)
    loss_fake = loss_function(discriminator(fake.detach()), zeros)
    (loss_real + loss_fake).backward()
    discriminator_optimizer.step()

    generator_optimizer.zero_grad()
    loss_generator = loss_function(discriminator(fake), ones)
    loss_generator.backward()
    generator_optimizer.step()
    print(f"{step}: D {(loss_real + loss_fake).item():.3f} G {loss_generator.item():.3f}")
