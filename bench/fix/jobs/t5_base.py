import torch
from data import Tokens
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration

config = T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12, decoder_start_token_id=0)

model = T5ForConditionalGeneration(config).cuda()
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for tokens in DataLoader(Tokens(1600, 512, 32000), batch_size=16, shuffle=True):
    tokens = tokens.cuda()
    loss = model(input_ids=tokens, labels=tokens[:, :128].contiguous()).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"loss {loss.item():.3f}")
