# SPDX-License-Identifier: Apache-2.0
"""Two ranks, or one process with two cards, and the mistake of a thread: threads.py NAME (table.toml says which thread)."""

import copy
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

WIDTH = 2048
MIB = 1 << 20


def layers(count=16):
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(count)))


def join(card=None):
    rank = int(os.environ["RANK"])
    if card is not None:
        torch.cuda.set_device(card)
    dist.init_process_group("nccl")
    return rank


def wrapped(model, rank, **options):
    return nn.parallel.DistributedDataParallel(model.cuda(rank), device_ids=[rank], **options)


def train(model, rank, steps=3, batch=64, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(steps):
        model(torch.randn(batch, WIDTH, device=rank)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return optimizer


def gathered_outputs():
    """A language model whose logits DataParallel gathers on card 0, where the loss is computed."""
    model = nn.DataParallel(nn.Sequential(nn.Embedding(32000, 512), nn.Linear(512, 32000, bias=False)).cuda())
    for _ in range(3):
        ids = torch.randint(32000, (16, 256)).cuda()
        nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()


def gathered_maps():
    """Twelve full-size predictions of an iterative network, all gathered on card 0."""

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Conv2d(3, 2, 3, padding=1)

        def forward(self, x):
            return [self.step(x) for _ in range(12)]

    model = nn.DataParallel(Flow().cuda())
    for _ in range(3):
        sum(each.abs().mean() for each in model(torch.randn(16, 3, 512, 512).cuda())).backward()


def contexts():
    """Each rank makes a tensor on the current card, 0, before it uses its own."""
    rank = join()
    torch.ones(1, device="cuda")
    train(wrapped(layers(), rank), rank)


def map_location():
    """A checkpoint of card 0 is loaded by every rank where it was saved."""
    rank = join()
    if rank == 0:
        torch.save(layers().to("cuda:0").state_dict(), "last.pt")
    dist.barrier(device_ids=[rank])
    model = layers()
    state = torch.load("last.pt")
    model.load_state_dict(state)
    train(wrapped(model, rank), rank)


def full_state():
    """FSDP's full state dict is gathered on the card."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    rank = join(int(os.environ["RANK"]))
    model = FullyShardedDataParallel(layers(32), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=rank)
    train(model, rank, optimizer=torch.optim.SGD(model.parameters(), 0.1, foreach=False))
    torch.save(model.state_dict(), "model.pt")


def ema_state():
    """The same of an averaged copy of the model."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    rank = join(int(os.environ["RANK"]))
    wrap = {"auto_wrap_policy": ModuleWrapPolicy({nn.Linear}), "device_id": rank}
    model, average = (FullyShardedDataParallel(layers(32), **wrap) for _ in range(2))
    train(model, rank, optimizer=torch.optim.SGD(model.parameters(), 0.1, foreach=False))
    torch.save(average.state_dict(), "average.pt")


def no_policy():
    """FSDP without a wrapping policy: one unit, gathered whole."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    rank = join(int(os.environ["RANK"]))
    train(FullyShardedDataParallel(layers(32), device_id=rank), rank)


def resumed():
    """A checkpoint is loaded onto the card and kept while training goes on."""
    rank = join(int(os.environ["RANK"]))
    model = wrapped(layers(), rank, gradient_as_bucket_view=True)
    optimizer = train(model, rank, steps=1)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{rank}.pt")
    checkpoint = torch.load(f"{rank}.pt", map_location=f"cuda:{rank}")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    train(model, rank, optimizer=optimizer)


def same_card():
    """Both ranks use card 0, for more steps than one may be late."""
    join(0)
    model = layers().cuda()
    train(model, 0, steps=400)


def flattened():
    """All gradients are copied into one tensor to be summed."""
    rank = join(int(os.environ["RANK"]))
    model = layers().cuda()
    for _ in range(3):
        model(torch.randn(64, WIDTH, device=rank)).square().mean().backward()
        flat = torch.cat([p.grad.flatten() for p in model.parameters()])
        dist.all_reduce(flat)


def logits():
    """A vocabulary of 128,000: the logits are most of it."""
    rank = join(int(os.environ["RANK"]))
    model = wrapped(nn.Sequential(nn.Embedding(128000, 64), nn.Linear(64, 128000, bias=False)), rank)
    for _ in range(3):
        ids = torch.randint(128000, (2, 1024), device=rank)
        nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()


def kept_outputs():
    """Evaluation gathers the logits of all ranks and keeps them on the card."""
    rank = join(int(os.environ["RANK"]))
    model = wrapped(layers(), rank, gradient_as_bucket_view=True)
    train(model, rank)
    kept = []
    with torch.no_grad():
        for _ in range(200):
            output = model(torch.randn(1024, WIDTH, device=rank))
            every = [torch.empty_like(output) for _ in range(2)]
            dist.all_gather(every, output)
            kept.append(torch.cat(every))


def copies():
    """A frozen reference copy of the model beside it."""
    rank = join(int(os.environ["RANK"]))
    model = layers().cuda()
    reference = copy.deepcopy(model).eval()
    model = wrapped(model, rank, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(3):
        x = torch.randn(64, WIDTH, device=rank)
        with torch.no_grad():
            wanted = reference(x)
        (model(x) - wanted).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def too_few():
    """Sharded over both cards, the model and its optimizer are still too much."""
    from torch.distributed.fsdp import fully_shard

    rank = join(int(os.environ["RANK"]))
    model = layers(64).cuda()
    for layer in model:
        fully_shard(layer)
    train(fully_shard(model), rank)


def activations():
    """Parameters wait on the host, and it is the activations that take the card."""
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    rank = join(int(os.environ["RANK"]))
    model = layers(32)
    for layer in model:
        fully_shard(layer, offload_policy=CPUOffloadPolicy())
    train(fully_shard(model, offload_policy=CPUOffloadPolicy()), rank, batch=16384)


def uneven():
    """Layers by hand: three quarters of them on card 0."""
    first, second = layers(48).to("cuda:0"), layers(16).to("cuda:1")
    optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()], foreach=False)
    for _ in range(3):
        second(first(torch.randn(64, WIDTH, device="cuda:0")).to("cuda:1")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def large_batch():
    """Of one rank a batch in the middle is four times as large."""
    rank = join(int(os.environ["RANK"]))
    model = wrapped(layers(), rank, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for step in range(8):
        train(model, rank, 1, 8192 if step == 5 and rank == 1 else 1024, optimizer)


def after_save():
    """FSDP trains, and the state dict that was saved is still held when it goes on."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    rank = join(int(os.environ["RANK"]))
    model = FullyShardedDataParallel(layers(32), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=rank)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)
    train(model, rank, optimizer=optimizer, batch=2048)
    state = model.state_dict()
    torch.save(state, "model.pt")
    train(model, rank, optimizer=optimizer, batch=2048)


def full_tensors():
    """fully_shard's parameters are made whole on the card, all of them, to be saved."""
    from torch.distributed.fsdp import fully_shard

    rank = join(int(os.environ["RANK"]))
    model = layers(32).cuda()
    for layer in model:
        fully_shard(layer)
    train(fully_shard(model), rank, optimizer=torch.optim.SGD(model.parameters(), 0.1, foreach=False))
    torch.save({name: value.full_tensor() for name, value in model.state_dict().items()}, "model.pt")


def sharded_save():
    """What is saved is sharded, but the optimizer's full state is gathered beside it."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
    from torch.distributed.fsdp import fully_shard

    rank = join(int(os.environ["RANK"]))
    model = layers(32).cuda()
    for layer in model:
        fully_shard(layer)
    optimizer = train(fully_shard(model), rank)
    get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True))


def whole_first():
    """Every rank puts the whole model on its card before it is sharded."""
    from torch.distributed.fsdp import fully_shard

    rank = join(int(os.environ["RANK"]))
    model = layers(64).cuda()
    for layer in model:
        fully_shard(layer)
    train(fully_shard(model), rank, optimizer=torch.optim.SGD(model.parameters(), 0.1, foreach=False))


def each_whole():
    """Each rank loads the whole model: two cards hold it twice."""
    rank = join(int(os.environ["RANK"]))
    wrapped(layers(96), rank)


def state_only():
    """Only the optimizer's state is sharded: parameters and gradients are whole on each card."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    rank = join(int(os.environ["RANK"]))
    model = wrapped(layers(64), rank, gradient_as_bucket_view=True)
    train(model, rank, optimizer=ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW))


def no_offload():
    """The configuration said offload, and the strategy was made without: optimizer state is on the card."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    rank = join(int(os.environ["RANK"]))
    model = FullyShardedDataParallel(layers(64), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=rank, cpu_offload=None)
    train(model, rank)


def one_position():
    """Logits of all positions are made where one is needed."""
    rank = join(int(os.environ["RANK"]))
    model = wrapped(nn.Sequential(nn.Embedding(64000, 64), nn.Linear(64, 64000, bias=False)), rank)
    with torch.no_grad():
        for _ in range(3):
            model(torch.randint(64000, (4, 2048), device=rank))[:, -1]


def no_checkpointing():
    """A frozen model whose layers are not checkpointed: activations of all of them are kept."""
    rank = join(int(os.environ["RANK"]))
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), *(nn.Sequential(layer, nn.GELU()) for layer in layers(32).requires_grad_(False)))
    train(wrapped(model, rank), rank, batch=8192)


def long_sequence():
    """One picture of very many patches: attention over all of them, written out."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.queries, self.keys, self.values = (nn.Linear(256, 256) for _ in range(3))

        def forward(self, x):
            q, k, v = (part(x).unflatten(-1, (4, 64)).transpose(1, 2) for part in (self.queries, self.keys, self.values))
            scores = q @ k.transpose(-2, -1) / 8
            return x + (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

    rank = join(int(os.environ["RANK"]))
    model = wrapped(nn.Sequential(*(Attention() for _ in range(4))), rank)
    for _ in range(3):
        model(torch.randn(1, 4096, 256, device=rank)).square().mean().backward()


def caught():
    """An out-of-memory is caught, and the batch tried again where the exception still holds what the first try made."""
    rank = join(int(os.environ["RANK"]))
    model = wrapped(layers(), rank, gradient_as_bucket_view=True)
    x = torch.randn(16384, WIDTH, device=rank)
    try:
        model.module(x).square().mean().backward()
    except torch.OutOfMemoryError as error:
        kept = error
    model.module(x[:12288]).square().mean().backward()
    return kept


def later_longer():
    """Texts of the first steps are short, those of a later one long."""
    rank = join(int(os.environ["RANK"]))
    model = wrapped(layers(), rank, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for length in (64, 80, 96, 72, 1536):
        model(torch.randn(8, length, WIDTH, device=rank)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def not_given_back():
    """Generation starts on a card where training's cache and state still lie: a part of the card is asked for at once."""
    rank = join(int(os.environ["RANK"]))
    model = wrapped(layers(), rank, gradient_as_bucket_view=True)
    optimizer = train(model, rank)
    torch.empty(1500 * MIB, dtype=torch.uint8, device=rank)
    return optimizer


globals()[sys.argv[1]]()
