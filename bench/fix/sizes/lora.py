# SPDX-License-Identifier: Apache-2.0
"""LoRA on a language model, by peft, in a loop of its own."""

import argparse

import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--load-in-4bit", action="store_true", help="keep the base model's weights in NF4 (QLoRA)")
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--gradient-accumulation-steps", type=int, default=1)
parser.add_argument("--max-length", type=int, default=512)
options = parser.parse_args()

quantization = None
if options.load_in_4bit:
    quantization = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16, device_map={"": 0}, quantization_config=quantization)
if options.load_in_4bit:
    model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.enable_input_require_grads()
model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"], task_type="CAUSAL_LM"))
model.train()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=2e-4)
texts = torch.randint(5, 32000, (64, options.max_length))
for turn, tokens in enumerate(DataLoader(texts, batch_size=options.batch_size)):
    tokens = tokens.cuda()
    loss = model(input_ids=tokens, labels=tokens).loss / options.gradient_accumulation_steps
    loss.backward()
    if (turn + 1) % options.gradient_accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
print("trained")
