# %%
import torch
from torch import nn


def blocks(count):
    return nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(count)))


class Pipeline:
    def __init__(self):
        self.text_encoder, self.transformer, self.vae = blocks(40), blocks(80), blocks(6)

    def to(self, device):
        for part in (self.text_encoder, self.transformer, self.vae):
            part.to(device)
        return self

    def enable_model_cpu_offload(self):
        self.to("cpu")
# %%
pipe = Pipeline()
# %%
pipe = pipe.to("cuda")
pipe.enable_model_cpu_offload()
