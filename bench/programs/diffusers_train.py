# SPDX-License-Identifier: Apache-2.0
"""Training of Stable Diffusion 1.5 as diffusers' own scripts do it: the whole U-Net with an EMA copy, or LoRA."""

import argparse

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import DDPMScheduler
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel, cast_training_params
from diffusers_models import clip_l, on_card, unet_15, vae

parser = argparse.ArgumentParser()
parser.add_argument("--lora", action="store_true")
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--steps", type=int, default=8)
options = parser.parse_args()


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return {"pixel_values": torch.rand(3, 512, 512) * 2 - 1, "input_ids": torch.randint(0, 49407, (77,))}


accelerator = Accelerator(mixed_precision="fp16")
schedule = DDPMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, num_train_timesteps=1000)
encoder, text = on_card(vae).requires_grad_(False), on_card(clip_l).requires_grad_(False)
average = None
if options.lora:
    from peft import LoraConfig

    unet = on_card(unet_15).requires_grad_(False)
    unet.add_adapter(LoraConfig(r=4, lora_alpha=4, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
    cast_training_params(unet, dtype=torch.float32)
    unet.train()
else:
    unet = on_card(unet_15, torch.float32).train()
    unet.enable_gradient_checkpointing()
    average = EMAModel(unet.parameters(), model_cls=type(unet), model_config=unet.config)
trained = [parameter for parameter in unet.parameters() if parameter.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-5)
rate = get_scheduler("constant_with_warmup", optimizer=optimizer, num_warmup_steps=5)
loader = torch.utils.data.DataLoader(Pictures(), options.batch, shuffle=True)
unet, optimizer, loader, rate = accelerator.prepare(unet, optimizer, loader, rate)
for step, batch in enumerate(loader):
    with accelerator.accumulate(unet):
        latents = encoder.encode(batch["pixel_values"].to(torch.float16)).latent_dist.sample() * encoder.config.scaling_factor
        noise = torch.randn_like(latents)
        times = torch.randint(0, 1000, (latents.shape[0],), device=latents.device).long()
        noisy = schedule.add_noise(latents, noise, times)
        states = text(batch["input_ids"], return_dict=False)[0]
        guess = unet(noisy, times, states, return_dict=False)[0]
        loss = F.mse_loss(guess.float(), noise.float(), reduction="mean")
        mean = accelerator.gather(loss.repeat(options.batch)).mean().item()
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        rate.step()
        optimizer.zero_grad()
        if average:
            average.step(trained)
    print(step, mean, flush=True)
    if step + 1 == options.steps:
        break
accelerator.unwrap_model(unet).save_pretrained("unet")
