# SPDX-License-Identifier: Apache-2.0
"""program.py FOLDER LOAD WORK: loads a checkpoint as its documentation does, then generates or trains.

LOAD: card (straight onto it), cpu (then moved), cast (fp32 to fp16 on the CPU, then moved), isnan (each parameter looked at on
the CPU, then moved), quantise (to NF4 while loading), gptq (by gptqmodel's kernels for PyTorch), auto or offload (device_map="auto", without and with room on the CPU),
lora, pipeline. WORK: generate, adamw, sgd, adapter (AdamW on an adapter) or none. Prints one line of JSON at the end of loading.
"""

import json
import os
import sys

import torch

folder, load, work = sys.argv[1:4]


def say(model=None):
    torch.cuda.synchronize()
    stats = [torch.cuda.memory_stats(card) for card in range(torch.cuda.device_count())]
    held, asked = (sum(each.get(f"{name}_bytes.all.current", 0) for each in stats) for name in ("allocated", "requested"))
    places = {name: str(place) for name, place in getattr(model, "hf_device_map", {}).items()}
    print(json.dumps({"loaded": held, "requested": asked, "map": places}), flush=True)


def pipeline():
    from diffusers import StableDiffusionXLPipeline

    pipe = StableDiffusionXLPipeline.from_pretrained(folder, torch_dtype=torch.float16).to("cuda")
    say()
    if work == "generate":
        pipe("a cat", num_inference_steps=4, height=1024, width=1024)
        return
    unet = pipe.unet.train()
    unet.enable_gradient_checkpointing()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5)
    for _ in range(2):
        noise = torch.randn(1, 4, 128, 128, device="cuda", dtype=torch.float16)
        text = {"text_embeds": torch.zeros(1, 1280, device="cuda", dtype=torch.float16), "time_ids": torch.zeros(1, 6, device="cuda")}
        states = torch.zeros(1, 77, 2048, device="cuda", dtype=torch.float16)
        unet(noise, 10, states, added_cond_kwargs=text).sample.float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def loaded():
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    if load == "lora":
        from peft import PeftModel

        base = AutoModelForCausalLM.from_pretrained(os.path.join(folder, "base"), dtype="auto", device_map={"": 0})
        return PeftModel.from_pretrained(base, folder, is_trainable=work == "adapter")
    options = {"dtype": "auto"}
    if load == "cast":
        options = {"dtype": torch.float32}
    elif load in ("card", "quantise", "gptq"):
        options["device_map"] = {"": 0}
    elif load in ("auto", "offload"):
        options["device_map"] = "auto"
    if load == "quantise":
        options["quantization_config"] = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                                            bnb_4bit_compute_dtype=torch.bfloat16)  # fmt: skip
    elif load == "gptq":
        from transformers import GPTQConfig

        # Left to itself gptqmodel takes Machete's kernels on such a card, for which it fetches CUTLASS and compiles it.
        options["quantization_config"] = GPTQConfig(bits=4, backend="gptq_torch")
    elif load == "offload":
        from accelerate.utils import get_max_memory

        options["max_memory"] = {**get_max_memory(), "cpu": 200 << 30}
    model = AutoModelForCausalLM.from_pretrained(folder, **options)
    if load == "cast":
        model = model.half()
    elif load == "isnan":
        assert not any(torch.isnan(parameter).any() for parameter in model.parameters())
    return model.cuda() if load in ("cpu", "cast", "isnan") else model


def language_model():
    from transformers import AutoTokenizer

    model = loaded()
    say(model)
    if work == "adapter" and load != "lora":
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    tokenizer = AutoTokenizer.from_pretrained(os.path.join(folder, "base") if load == "lora" else folder)
    if work == "generate":
        batch = tokenizer("once upon a time", return_tensors="pt").to("cuda")
        model.generate(**batch, max_new_tokens=16, min_new_tokens=16, do_sample=False)
    elif work != "none":
        ids = tokenizer("once upon a time " * 64, return_tensors="pt").to("cuda").input_ids
        kind = torch.optim.SGD if work == "sgd" else torch.optim.AdamW
        optimizer = kind([p for p in model.parameters() if p.requires_grad], lr=1e-5)
        for _ in range(2):
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()


(pipeline if load == "pipeline" else language_model)()
