import torch
from transformers import AutoModelForCausalLM, LlamaConfig

config = LlamaConfig(
    hidden_size=2048,
    intermediate_size=5632,
    num_hidden_layers=8,
    num_attention_heads=16,
    num_key_value_heads=8,
    vocab_size=8000,
    max_position_embeddings=4096,
)
model = AutoModelForCausalLM.from_config(config, torch_dtype=torch.float16).to("cuda").eval()
prompt = torch.randint(3, 8000, (80, 8), device="cuda")
answer = model.generate(
    prompt,
    attention_mask=torch.ones_like(prompt),
    max_new_tokens=88,
    min_new_tokens=88,
    do_sample=False,
    pad_token_id=0,
)
print("generated", tuple(answer.shape))
