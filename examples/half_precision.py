"""Loads a language model of 6.7 billion parameters and answers one prompt.

Wrong: four bytes a parameter are 25.1 GiB, two (--dtype bfloat16) are 12.6: a 12 GB card runs out while the model is
moved there. One byte (--dtype int8) is 6.5, and fits.
"""

import argparse

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--dtype", choices=["float32", "bfloat16", "int8"], default="float32")
options = parser.parse_args()


class Int8Linear(nn.Module):
    """Weights of one byte with one scale a row, expanded as they are used."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.register_buffer("weight", torch.zeros(outputs, inputs, dtype=torch.int8, device="cuda"))  # your weights
        self.register_buffer("scale", torch.ones(outputs, 1, dtype=torch.bfloat16, device="cuda"))

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype) * self.scale)


dtype = torch.float32 if options.dtype == "float32" else torch.bfloat16
model = LlamaForCausalLM(LlamaConfig()).to(dtype).eval()
if options.dtype == "int8":
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                setattr(module, name, Int8Linear(*child.weight.shape))
model.cuda()  # <- out of memory

prompt = torch.randint(32_000, (1, 512)).cuda()
answer = model.generate(prompt, max_new_tokens=16, do_sample=False, pad_token_id=0)
print(answer.shape)
