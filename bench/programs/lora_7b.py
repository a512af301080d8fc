# SPDX-License-Identifier: Apache-2.0
"""A hand-written LoRA loop on a 7B Llama by peft; bf16, 8-bit or NF4 base.

--eval leaves the model as from_pretrained gives it: in eval(), where transformers' checkpointing is off.
"""

import argparse

import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--bits", type=int, default=16)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--eval", action="store_true")
options = parser.parse_args()

quantization = {
    16: None,
    8: BitsAndBytesConfig(load_in_8bit=True),
    4: BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                          bnb_4bit_compute_dtype=torch.bfloat16),
}[options.bits]  # fmt: skip
model = AutoModelForCausalLM.from_pretrained(
    options.model, dtype=torch.bfloat16, device_map={"": 0}, quantization_config=quantization
)
if quantization:
    model = prepare_model_for_kbit_training(model)
else:
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
print("footprint", model.get_memory_footprint() >> 20, "MiB", flush=True)
lora = LoraConfig(r=16, target_modules="all-linear" if quantization else ["q_proj", "v_proj"], task_type="CAUSAL_LM")
model = get_peft_model(model, lora)
if not options.eval:
    model.train()
trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
if options.bits == 4:
    import bitsandbytes

    optimizer = bitsandbytes.optim.PagedAdamW8bit(trained, lr=1e-4)
else:
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
for step in range(8):
    tokens = torch.randint(5, 32000, (options.batch, 512), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item(), flush=True)
model.save_pretrained("adapter")
