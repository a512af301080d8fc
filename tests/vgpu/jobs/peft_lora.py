import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig

config = LlamaConfig(
    hidden_size=1536, intermediate_size=4096, num_hidden_layers=10, num_attention_heads=12, vocab_size=32000
)
base = AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16)
lora = LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
model = get_peft_model(base, lora)
model.print_trainable_parameters()
model.cuda().train()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=2e-4)

for step in range(4):
    tokens = torch.randint(config.vocab_size, (4, 768), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.save_pretrained("adapter")
