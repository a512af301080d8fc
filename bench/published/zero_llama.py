"""LLaMA-7B under DeepSpeed's ZeRO, as the figures' author trains: zero_llama.py STAGE BATCH [checkpointing]. Prints what PyTorch has allocated, and the most.

His program is not published with the figures. What is taken from his other ones (chenyaofo/OpenLM of 2023, chenyaofo/CCA-Attention of 2025): the settings of
zero_optimization, which are the same in both, a fused AdamW, the model's output kept until the next one has come, and the figures asked for after each batch.
"""

import sys

import torch.distributed.elastic.agent.server.api as agent

agent.log = agent.logger  # DeepSpeed 0.14 asks for names of its day
agent._get_socket_with_port = None

import deepspeed  # noqa: E402
import torch  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

stage, batch, checkpointing = int(sys.argv[1]), int(sys.argv[2]), "checkpointing" in sys.argv
accumulation = max(64 // 8 // batch, 1)
config = {
    "train_micro_batch_size_per_gpu": batch,
    "gradient_accumulation_steps": accumulation,
    "bf16": {"enabled": True},
    "gradient_clipping": 1.0,
    "zero_optimization": {
        "stage": stage,
        "overlap_comm": True,
        "stage3_param_persistence_threshold": 1e4,
        "stage3_max_live_parameters": 3e7,
        "stage3_prefetch_bucket_size": 3e7,
        "memory_efficient_linear": False,
    },
}
with deepspeed.zero.Init(config_dict_or_path=config, enabled=stage == 3):
    torch.set_default_dtype(torch.bfloat16)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32))
    torch.set_default_dtype(torch.float32)
if checkpointing:
    model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
engine.train()
for _ in range(3 * accumulation):
    tokens = torch.randint(32000, (batch, 4096), device=engine.device)
    outputs = engine(input_ids=tokens, labels=tokens, use_cache=False)
    loss = outputs.loss
    engine.backward(loss)
    engine.step()
    if engine.global_rank == 0:
        print(f"allocated {torch.cuda.memory_allocated() / 2**30:.2f} at most {torch.cuda.max_memory_allocated() / 2**30:.2f}", flush=True)
