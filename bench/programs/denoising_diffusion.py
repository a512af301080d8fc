# SPDX-License-Identifier: Apache-2.0
"""denoising-diffusion-pytorch: its own trainer, U-Net of 64 channels, pictures of 128 x 128, batch 16 x 2, EMA, samples."""

import pathlib
import subprocess
import sys

from denoising_diffusion_pytorch import GaussianDiffusion, Trainer, Unet

if __name__ == "__main__":
    subprocess.run([sys.executable, pathlib.Path(__file__).with_name("pictures.py"), "folders", "pictures"], check=True)
    net = Unet(dim=64, dim_mults=(1, 2, 4, 8), flash_attn=True)
    diffusion = GaussianDiffusion(net, image_size=128, timesteps=1000, sampling_timesteps=20)
    trainer = Trainer(
        diffusion, "pictures", train_batch_size=16, train_lr=8e-5, train_num_steps=20, gradient_accumulate_every=2, num_samples=4,
        save_and_sample_every=10, amp=True, calculate_fid=False)  # fmt: skip
    trainer.train()
