import torch
from transformers import T5Config, T5ForConditionalGeneration

config = T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8, vocab_size=32128, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config).to("cuda").train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for _ in range(4):
    source = torch.randint(1, 32000, (16, 256)).to("cuda")
    target = torch.randint(1, 32000, (16, 128)).to("cuda")
    output = model(input_ids=source, attention_mask=torch.ones_like(source), labels=target)
    output.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
