# SPDX-License-Identifier: Apache-2.0
"""Pictures of one prompt by a pipeline of Stable Diffusion 1.5's sizes, built from its published configuration."""

import argparse

import torch
from diffusers import AutoencoderKL, PNDMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel

parser = argparse.ArgumentParser()
parser.add_argument("--pictures", type=int, default=8)
parser.add_argument("--steps", type=int, default=4)
options = parser.parse_args()

unet = UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8, block_out_channels=(320, 640, 1280, 1280))
vae = AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2, sample_size=512,
                    down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4)  # fmt: skip
text_encoder = CLIPTextModel(CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12))
pipe = StableDiffusionPipeline(vae=vae, text_encoder=text_encoder, tokenizer=None, unet=unet, scheduler=PNDMScheduler(),
                               safety_checker=None, feature_extractor=None, requires_safety_checker=False)  # fmt: skip
pipe = pipe.to("cuda", torch.float16)
prompt = torch.randn(1, 77, 768, dtype=torch.float16, device="cuda")
pictures = pipe(prompt_embeds=prompt, negative_prompt_embeds=torch.zeros_like(prompt), num_images_per_prompt=options.pictures,
                num_inference_steps=options.steps).images  # fmt: skip
print(len(pictures), "pictures")
