# A FastAPI server whose text encoder stays on the card while the picture's network is moved there: PORT.
import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from torch import nn

app = FastAPI()


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(40)))

    def forward(self, x):
        return self.layers(x)


text_encoder, unet = TextEncoder(), nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(60)))


class Prompt(BaseModel):
    text: str


@app.post("/generate")
def generate(prompt: Prompt):
    with torch.no_grad():
        words = text_encoder.cuda()(torch.ones(len(prompt.text), 2048, device="cuda"))
        return {"shape": list(unet.cuda()(words).shape)}


uvicorn.run(app, port=int(sys.argv[1]))
