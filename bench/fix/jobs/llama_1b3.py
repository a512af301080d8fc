import torch
from data import Tokens
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(hidden_size=2048, intermediate_size=5504, num_hidden_layers=24, num_attention_heads=16)

model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for tokens in DataLoader(Tokens(400, 2048, 32000), batch_size=8, shuffle=True):
    tokens = tokens.cuda()
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"loss {loss.item():.3f}")
