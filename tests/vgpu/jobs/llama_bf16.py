import torch
from transformers import AutoModelForCausalLM, LlamaConfig

config = LlamaConfig(
    hidden_size=1024,
    intermediate_size=2816,
    num_hidden_layers=12,
    num_attention_heads=16,
    num_key_value_heads=4,
    vocab_size=32000,
)
model = AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=True)

for step in range(4):
    tokens = torch.randint(config.vocab_size, (4, 1024)).cuda()
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, float(loss))
