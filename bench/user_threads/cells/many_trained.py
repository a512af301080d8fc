# %%
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8, vocab_size=64000)
# %%
model = LlamaForCausalLM(config).cuda()
# %%
for name, parameter in model.named_parameters():
    parameter.requires_grad_("embed_tokens" in name or "lm_head" in name or "q_proj" in name)
trained = sum(each.numel() for each in model.parameters() if each.requires_grad)
print(f"trained: {trained / sum(each.numel() for each in model.parameters()):.0%}")
# %%
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad])
for _ in range(3):
    ids = torch.ones(1, 32, dtype=torch.long, device="cuda")
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
