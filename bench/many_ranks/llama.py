"""A Llama, trained on several cards in bfloat16 with AdamW: llama.py SIZE WAY [STEPS].

    torchrun --nproc-per-node 8 llama.py 70b fsdp
    torchrun --nnodes 16 --nproc-per-node 8 ... llama.py 405b tp
    torchrun --nnodes 128 --nproc-per-node 8 ... llama.py 7b ddp

WAY: ddp, fsdp (fully_shard of each block), tp (tensor parallelism on a node, fully_shard across nodes).
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

SIZES = {  # width, inner width, blocks, heads, heads of keys and values, vocabulary
    "7b": (4096, 11008, 32, 32, 32, 32000),
    "70b": (8192, 28672, 80, 64, 8, 128256),
    "405b": (16384, 53248, 126, 128, 8, 128256),
}
LENGTH, HEAD = 2048, 128


class Block(nn.Module):
    def __init__(self, width, inner, heads, pairs):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, each * HEAD, bias=False) for each in (heads, pairs, pairs))
        self.o = nn.Linear(heads * HEAD, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)  # fmt: skip

    def forward(self, x):
        n = self.norm1(x)
        q, k, v = (each(n).unflatten(-1, (-1, HEAD)).transpose(1, 2) for each in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2))
        n = self.norm2(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Llama(nn.Module):
    def __init__(self, width, inner, blocks, heads, pairs, words):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, inner, heads, pairs) for _ in range(blocks))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(self.norm(x))


size, way = sys.argv[1:3]
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", device_id=torch.device("cuda", local))
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda" if way == "ddp" else "meta"):
    model = Llama(*SIZES[size])
if way == "tp":
    mesh = init_device_mesh("cuda", (dist.get_world_size() // 8, 8), mesh_dim_names=("shards", "tp"))
    across, down = ColwiseParallel(), RowwiseParallel()
    for block in model.blocks:
        parallelize_module(block, mesh["tp"], {"q": across, "k": across, "v": across, "gate": across, "up": across, "o": down, "down": down})
        fully_shard(block, mesh=mesh["shards"])
    fully_shard(model, mesh=mesh["shards"])
elif way == "fsdp":
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
if way == "ddp":
    model = nn.parallel.DistributedDataParallel(model, [local], gradient_as_bucket_view=True)
else:
    model.to_empty(device="cuda")
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 3):
    tokens = torch.randint(SIZES[size][-1], (1, LENGTH + 1), device="cuda")
    logits = model(tokens[:, :-1])
    F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
