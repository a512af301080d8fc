"""Lets a language model in half precision continue 96 prompts at once by 1024 words.

Wrong: keys and values of all prompts take 12 MiB for every word, 16.5 GiB in the end; a 12 GB card runs out after about
150 words.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=16, max_position_embeddings=2048
)
model = LlamaForCausalLM(config).half().cuda().eval()
prompts = torch.randint(32_000, (96, 384)).cuda()
texts = model.generate(prompts, max_new_tokens=1024, do_sample=False, pad_token_id=0)  # <- out of memory
print(texts.shape)
