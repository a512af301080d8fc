# SPDX-License-Identifier: Apache-2.0
"""Pipelines of diffusers: sd15, sd15_offload, sdxl, flux; the prompt comes as embeddings, as from a text encoder."""

import sys

import torch
from diffusers import (
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxPipeline,
    PNDMScheduler,
    StableDiffusionPipeline,
    StableDiffusionXLPipeline,
)
from diffusers_models import clip_g, clip_l, flux as flux_network, on_card, t5_xxl, unet_15, unet_xl, vae


def sd15(offload=False):
    pipe = StableDiffusionPipeline(
        vae=on_card(vae), text_encoder=on_card(clip_l), tokenizer=None, unet=on_card(unet_15), scheduler=PNDMScheduler(),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False)  # fmt: skip
    if offload:
        pipe.to("cpu")
        torch.cuda.reset_peak_memory_stats()
        pipe.enable_model_cpu_offload()
    text = torch.zeros(4, 77, 768, dtype=torch.float16, device="cuda")
    return pipe(prompt_embeds=text, negative_prompt_embeds=text, num_inference_steps=6, height=512, width=512)


def sd15_offload():
    return sd15(offload=True)


def sdxl():
    pipe = StableDiffusionXLPipeline(
        vae=on_card(vae, sample_size=1024, scaling_factor=0.13025), text_encoder=on_card(clip_l), text_encoder_2=on_card(clip_g),
        tokenizer=None, tokenizer_2=None, unet=on_card(unet_xl), scheduler=EulerDiscreteScheduler())  # fmt: skip
    text = torch.zeros(1, 77, 2048, dtype=torch.float16, device="cuda")
    pooled = torch.zeros(1, 1280, dtype=torch.float16, device="cuda")
    return pipe(prompt_embeds=text, negative_prompt_embeds=text, pooled_prompt_embeds=pooled, negative_pooled_prompt_embeds=pooled,
                num_inference_steps=6, height=1024, width=1024)  # fmt: skip


def flux():
    kind = torch.bfloat16
    pipe = FluxPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(), vae=on_card(vae, kind, latent_channels=16, use_quant_conv=False,
        use_post_quant_conv=False, shift_factor=0.1159), text_encoder=on_card(clip_l, kind), tokenizer=None,
        text_encoder_2=on_card(t5_xxl, kind), tokenizer_2=None, transformer=on_card(flux_network, kind))  # fmt: skip
    text = torch.zeros(1, 512, 4096, dtype=kind, device="cuda")
    pooled = torch.zeros(1, 768, dtype=kind, device="cuda")
    return pipe(prompt_embeds=text, pooled_prompt_embeds=pooled, num_inference_steps=4, height=1024, width=1024)


with torch.no_grad():
    pictures = globals()[sys.argv[1]]().images
print(len(pictures), pictures[0].size, torch.cuda.max_memory_allocated() >> 20, "MiB")
