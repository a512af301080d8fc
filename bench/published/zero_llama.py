"""LLaMA-7B under DeepSpeed's ZeRO: zero_llama.py STAGE BATCH [checkpointing]. Prints what PyTorch has allocated, and the most."""

import sys

import deepspeed
import torch
from transformers import LlamaConfig, LlamaForCausalLM

words = [word for word in sys.argv[1:] if not word.startswith("--local_rank")]
stage, batch, checkpointing = int(words[0]), int(words[1]), "checkpointing" in words
accumulation = 64 // 8 // batch
config = {
    "train_micro_batch_size_per_gpu": batch,
    "gradient_accumulation_steps": accumulation,
    "bf16": {"enabled": True},
    "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "torch_adam": True}},  # its own is compiled by nvcc as it is first used
    "zero_optimization": {"stage": stage, "overlap_comm": True, "contiguous_gradients": True},
}
torch.set_default_dtype(torch.bfloat16)
with deepspeed.zero.Init(config_dict_or_path=config, enabled=stage == 3):
    model = LlamaForCausalLM(LlamaConfig(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, use_cache=False))
torch.set_default_dtype(torch.float32)
if checkpointing:
    model.gradient_checkpointing_enable()
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
engine.train()
for step in range(3 * accumulation):
    tokens = torch.randint(32000, (batch, 4096), device=engine.device)
    loss = engine(input_ids=tokens, labels=tokens).loss
    engine.backward(loss)
    engine.step()
    if engine.global_rank == 0 and (step + 1) % accumulation == 0:
        print(f"allocated {torch.cuda.memory_allocated() / 2**30:.2f} at most {torch.cuda.max_memory_allocated() / 2**30:.2f}", flush=True)
