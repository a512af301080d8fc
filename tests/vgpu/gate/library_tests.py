# SPDX-License-Identifier: Apache-2.0
"""Tests of the library, as its authors would write them; run by ../test_gate.py."""

import os

import pytest


def test_plain():
    assert "TONNAGE_RUN" not in os.environ


@pytest.mark.tonnage(gpu="rtx3060", budget=os.environ.get("BUDGET", "1GiB"))
def test_training():
    from train import train

    train()


@pytest.mark.tonnage(gpu="rtx3060", budget="1GiB")
def test_more_layers():
    from train import train

    train(layers=8)


@pytest.mark.tonnage(gpu="rtx3060", budget="1GiB")
def test_training_again():
    from train import train

    train()


@pytest.mark.tonnage(gpu="rtx3060")
def test_that_fails():
    import torch

    x = torch.ones(3, device="cuda")
    assert x.shape == (4,), "no such shape"


@pytest.mark.tonnage(gpu="rtx3060")
def test_that_ends_python():
    os._exit(3)


@pytest.mark.tonnage
def test_on_another_card():
    import torch

    assert "A100" in torch.cuda.get_device_name()


def test_plain_again():
    assert "TONNAGE_RUN" not in os.environ
