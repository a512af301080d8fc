"""Reads four prompts of 16,384 words with a language model, and writes a few words more.

Wrong: the model makes logits of all words, 15.7 GiB of them, and only those of the last word are looked at; a 12 GB card runs out.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4,
                     vocab_size=128_256, max_position_embeddings=32_768)  # fmt: skip
model = LlamaForCausalLM(config).bfloat16().cuda().eval()
words = torch.randint(128_256, (4, 16_384)).cuda()
cache = None

with torch.inference_mode():
    for step in range(16):
        outputs = model(input_ids=words, past_key_values=cache)  # <- out of memory
        cache = outputs.past_key_values
        words = outputs.logits[:, -1].argmax(-1, keepdim=True)
print(words)
