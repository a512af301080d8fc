# SPDX-License-Identifier: Apache-2.0
"""Programs that train more than once, or more than one model, and leave nothing that is not wanted: one a word."""

import copy
import sys

import torch
from common import WIDTH, evaluate, make_loader, make_model, train


def adam(model):
    return torch.optim.Adam(model.parameters(), foreach=False)


def once():
    model = make_model().cuda()
    train(model, adam(model), make_loader())


def drops():
    for _ in range(4):
        once()


def dropped_by_hand():
    for _ in range(4):
        model = make_model().cuda()
        optimizer = adam(model)
        train(model, optimizer, make_loader())
        del model, optimizer


def best():
    """The best model so far is kept, nothing else of its training."""
    kept = None
    for _ in range(4):
        model = make_model().cuda()
        train(model, adam(model), make_loader())
        if kept is None:
            kept = model


def gan():
    generator, critic = make_model().cuda(), make_model().cuda()
    first, second = adam(generator), adam(critic)
    for _ in range(12):
        x = torch.zeros(8, WIDTH, device="cuda")
        second.zero_grad()
        critic(generator(x).detach()).mean().backward()
        second.step()
        first.zero_grad()
        critic(generator(x)).mean().backward()
        first.step()


def late_critic():
    """The second optimizer is made when the first has stepped, and both go on."""
    generator = make_model().cuda()
    first = adam(generator)
    train(generator, first, make_loader())
    critic = make_model().cuda()
    second = adam(critic)
    for _ in range(4):
        train(critic, second, make_loader(), 1)
        train(generator, first, make_loader(), 1)


def average():
    model = make_model().cuda()
    mean = copy.deepcopy(model)
    train(model, adam(model), make_loader())
    evaluate(mean, make_loader())


def teacher():
    """Trained first, and then asked by what is trained after it."""
    old = make_model().cuda()
    train(old, adam(old), make_loader())
    new = make_model().cuda()
    optimizer = adam(new)
    for _ in range(12):
        x = torch.zeros(8, WIDTH, device="cuda")
        optimizer.zero_grad()
        with torch.no_grad():
            goal = old(x)
        (new(x) - goal).pow(2).mean().backward()
        optimizer.step()


def ensemble():
    """Several, which are wanted at once when all are trained."""
    models = []
    for _ in range(4):
        models.append(make_model().cuda())
        train(models[-1], adam(models[-1]), make_loader())
    x = torch.zeros(8, WIDTH, device="cuda")
    with torch.no_grad():
        print(sum(model(x).mean() for model in models).item())


def unfrozen():
    """The head first, then all of it, by another optimizer."""
    model = make_model().cuda()
    head = torch.optim.Adam(model[-1].parameters())
    train(model, head, make_loader())
    train(model, adam(model), make_loader())


def resumed():
    """One model whose optimizer is made anew."""
    model = make_model().cuda()
    for _ in range(4):
        train(model, adam(model), make_loader())


globals()[sys.argv[1]]()
