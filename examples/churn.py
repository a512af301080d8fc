"""Cools a plate of 8192 x 8192 points, a thousand steps of arithmetic on whole tensors.

Wrong: every step makes eleven new tensors of 256 MiB; with --in-place it makes one, for good. Both fit a 12 GB card.
"""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--in-place", action="store_true")
options = parser.parse_args()


@torch.no_grad()
def cool(plate, steps, rate=0.1):
    for step in range(steps):
        around = plate.roll(1, 0) + plate.roll(-1, 0) + plate.roll(1, 1) + plate.roll(-1, 1)  # <- the mistake
        plate = plate + rate * (around - 4 * plate)
    return plate


@torch.no_grad()
def cool_in_place(plate, steps, rate=0.1):
    next = torch.empty_like(plate)
    for step in range(steps):
        torch.mul(plate, 1 - 4 * rate, out=next)
        next[1:].add_(plate[:-1], alpha=rate)
        next[:-1].add_(plate[1:], alpha=rate)
        next[:, 1:].add_(plate[:, :-1], alpha=rate)
        next[:, :-1].add_(plate[:, 1:], alpha=rate)
        plate, next = next, plate
    return plate


plate = torch.rand(8192, 8192, device="cuda")
plate = (cool_in_place if options.in_place else cool)(plate, 1000)
print("mean temperature", plate.mean().item())
