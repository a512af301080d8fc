import torch
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config()
model = GPT2LMHeadModel(config).cuda()
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)

for step in range(4):
    tokens = torch.randint(config.vocab_size, (8, 512), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("parameters", sum(p.numel() for p in model.parameters()))
print("peak", torch.cuda.max_memory_reserved())
