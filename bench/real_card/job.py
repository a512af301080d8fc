# SPDX-License-Identifier: Apache-2.0
"""One training or inference of jobs.csv, on whatever card PyTorch sees; prints one line of JSON with its peaks and times.

    job.py FAMILY NAME BATCH [OPTION...]

Nothing asks for a computed value, so that a virtual card, where kernels do not run, does the same. Models are built from
configurations; data is random. Options: length=N, steps=N, amp (float16 with a scaler), bf16 (autocast), half (bfloat16
weights), nhwc, checkpoint, accumulate (four pieces), eager (attention), adafactor, fused, sgd, compile, size=N.
"""

import contextlib
import fcntl
import json
import os
import statistics
import sys
import time

import torch
from torch import nn

OPTIONS = {}


def option(name, default=None):
    return OPTIONS.get(name, default)


# ---- models: each returns a module and a function that gives the loss of a batch ----


def vision(name):
    import torchvision

    layout = torch.channels_last if option("nhwc") else torch.contiguous_format
    size = int(option("size", 224))
    model = torchvision.models.get_model(name, weights=None).to(memory_format=layout)

    def loss(model, batch):
        images = torch.randn(batch, 3, size, size, device="cuda").contiguous(memory_format=layout)
        out = model(images)
        return nn.functional.cross_entropy(getattr(out, "logits", out), torch.zeros(batch, dtype=torch.long, device="cuda"))

    return model, loss


def segmentation(name):
    import torchvision

    model = torchvision.models.get_model(name, weights=None, weights_backbone=None)

    def loss(model, batch):
        out = model(torch.randn(batch, 3, 512, 512, device="cuda"))["out"]
        return nn.functional.cross_entropy(out, torch.zeros(batch, 512, 512, dtype=torch.long, device="cuda"))

    return model, loss


def language(name):
    import transformers

    attention = "eager" if option("eager") else "sdpa"
    length = int(option("length", 512))
    sizes = {
        "gpt2": lambda: transformers.GPT2Config(),
        "gpt2-medium": lambda: transformers.GPT2Config(n_embd=1024, n_layer=24, n_head=16),
        "bert-large": lambda: transformers.BertConfig(
            hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
        "llama-1b": lambda: transformers.LlamaConfig(
            hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
            num_key_value_heads=8, vocab_size=128256, max_position_embeddings=8192),
        "qwen2-0.5b": lambda: transformers.Qwen2Config(
            hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
            num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
        "mixtral-small": lambda: transformers.MixtralConfig(
            hidden_size=1024, intermediate_size=3584, num_hidden_layers=8, num_attention_heads=16,
            num_key_value_heads=8, num_local_experts=8, vocab_size=32000),
        "t5-base": lambda: transformers.T5Config(
            d_model=768, d_ff=3072, num_layers=12, num_heads=12, decoder_start_token_id=0),
    }  # fmt: skip
    config = sizes[name]()
    if name != "t5-base":
        config._attn_implementation = attention
    kinds = {"bert-large": "BertForMaskedLM", "t5-base": "T5ForConditionalGeneration"}
    with torch.device("cuda"):
        auto = getattr(transformers, kinds[name]) if name in kinds else transformers.AutoModelForCausalLM.from_config
        model = auto(config) if name in kinds else auto(config, attn_implementation=attention)
    if option("checkpoint"):
        model.gradient_checkpointing_enable()

    def loss(model, batch):
        tokens = torch.randint(0, 30000, (batch, length), device="cuda")
        return model(input_ids=tokens, labels=tokens).loss

    return model, loss


def recurrent(name):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(33278, 650)
            self.body = getattr(nn, name)(650, 650, 2, dropout=0.5, batch_first=True)
            self.head = nn.Linear(650, 33278)

        def forward(self, x):
            return self.head(self.body(self.words(x))[0])

    def loss(model, batch):
        tokens = torch.randint(0, 33278, (batch, int(option("length", 70))), device="cuda")
        return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())

    return Model(), loss


def graph(name):
    import torch_geometric

    model = getattr(torch_geometric.nn, name)(128, 256, 3, out_channels=47)
    nodes = 200000
    edges = torch.randint(0, nodes, (2, 12 * nodes), device="cuda")
    x = torch.randn(nodes, 128, device="cuda")

    def loss(model, batch):
        return nn.functional.cross_entropy(model(x, edges), torch.zeros(nodes, dtype=torch.long, device="cuda"))

    return model, loss


FAMILIES = {"vision": vision, "segmentation": segmentation, "language": language, "recurrent": recurrent, "graph": graph}


# ---- what is done with them ----


def optimizer_of(model):
    if option("adafactor"):
        return torch.optim.Adafactor(model.parameters())
    if option("sgd"):
        return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), fused=True if option("fused") else None)


def train(model, loss_of, batch):
    model.cuda().train()
    if option("half"):
        model.bfloat16()
    if option("compile"):
        model.compile()
    optimizer = optimizer_of(model)
    scaler = torch.amp.GradScaler("cuda", enabled=bool(option("amp")))
    pieces = 4 if option("accumulate") else 1
    kind = torch.float16 if option("amp") else torch.bfloat16 if option("bf16") else None
    for _ in range(int(option("steps", 6))):
        for _ in range(pieces):
            with torch.autocast("cuda", kind) if kind else contextlib.nullcontext():
                loss = loss_of(model, batch // pieces) / pieces
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        yield


def generate(model, batch):
    model.cuda().bfloat16().eval()
    tokens = torch.randint(0, 30000, (batch, int(option("length", 512))), device="cuda")
    new = int(option("new", 64))
    for _ in range(int(option("steps", 2))):
        model.generate(tokens, max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0)
        yield


def hf_trainer(model, batch):
    import tempfile

    import transformers

    length = int(option("length", 512))
    data = [{"input_ids": [7] * length, "labels": [7] * length} for _ in range(batch * 6)]
    arguments = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch, max_steps=6, bf16=True, report_to=[],
        gradient_checkpointing=bool(option("checkpoint")), save_strategy="no", logging_strategy="no",
        disable_tqdm=True,
    )  # fmt: skip
    trainer = transformers.Trainer(model, arguments, train_dataset=data)
    torch.cuda.reset_peak_memory_stats()
    trainer.train()
    yield


def main():
    family, name, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    OPTIONS.update((word.partition("=")[0], word.partition("=")[2] or "1") for word in sys.argv[4:])
    torch.manual_seed(0)
    turn = os.environ.get("REAL_CARD_TURN")
    if turn:
        held = os.open(turn, os.O_WRONLY)  # until the process ends
        fcntl.flock(held, fcntl.LOCK_EX)
    free, total = torch.cuda.mem_get_info()
    before, end = total - free, "done"
    times = []
    try:
        model, loss_of = FAMILIES[family](name)
        if option("generate"):
            steps = generate(model, batch)
        elif option("trainer"):
            steps = hf_trainer(model, batch)
        else:
            steps = train(model, loss_of, batch)
        started = time.perf_counter()
        for _ in steps:
            torch.cuda.synchronize()
            times.append(time.perf_counter() - started)
            started = time.perf_counter()
    except torch.cuda.OutOfMemoryError as error:
        end = str(error)
    free, total = torch.cuda.mem_get_info()
    stats = torch.cuda.memory_stats()
    result = {
        "job": " ".join(sys.argv[1:]),
        "end": end,
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "allocated_peak": stats["allocated_bytes.all.peak"],
        "reserved_peak": stats["reserved_bytes.all.peak"],
        "allocations": stats["allocation.all.allocated"],
        "segments": stats["segment.all.allocated"],
        "retries": stats["num_alloc_retries"],
        "beside_pytorch": total - free - stats["reserved_bytes.all.current"],
        "at_start": before,
        "total": total,
        "step_seconds": statistics.median(times[2:]) if len(times) > 2 else None,
    }
    print(json.dumps(result), flush=True)


main()
