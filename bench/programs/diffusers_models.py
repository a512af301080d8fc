# SPDX-License-Identifier: Apache-2.0
"""The networks of Stable Diffusion 1.5, XL and FLUX by their published configurations, built on the card."""

import torch
from diffusers import AutoencoderKL, FluxTransformer2DModel, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, T5Config, T5EncoderModel

VAE = {
    "block_out_channels": (128, 256, 512, 512), "layers_per_block": 2, "latent_channels": 4, "sample_size": 512,
    "down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}  # fmt: skip
CLIP_L = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "projection_dim": 768}
CLIP_G = {
    "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_attention_heads": 20, "hidden_act": "gelu",
    "projection_dim": 1280}  # fmt: skip


def unet_15():
    return UNet2DConditionModel(
        sample_size=64, cross_attention_dim=768, attention_head_dim=8, block_out_channels=(320, 640, 1280, 1280), layers_per_block=2
    )


def unet_xl():
    return UNet2DConditionModel(
        sample_size=128, cross_attention_dim=2048, attention_head_dim=(5, 10, 20), block_out_channels=(320, 640, 1280),
        layers_per_block=2, transformer_layers_per_block=(1, 2, 10), use_linear_projection=True, addition_embed_type="text_time",
        addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"))  # fmt: skip


def vae(**more):
    return AutoencoderKL(**{**VAE, **more})


def clip_l(projection=False):
    return (CLIPTextModelWithProjection if projection else CLIPTextModel)(CLIPTextConfig(**CLIP_L))


def clip_g():
    return CLIPTextModelWithProjection(CLIPTextConfig(**CLIP_G))


def t5_xxl():
    return T5EncoderModel(
        T5Config(vocab_size=32128, d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64, feed_forward_proj="gated-gelu")
    )


def flux():
    return FluxTransformer2DModel(guidance_embeds=True)


def on_card(build, dtype=torch.float16, **more):
    """A network in its type, without a copy in host memory."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("cuda"):
            return build(**more).eval()
    finally:
        torch.set_default_dtype(before)
