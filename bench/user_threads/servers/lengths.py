# A FastAPI server that scores texts of any length: PORT.
import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import GPT2Config, GPT2LMHeadModel

app = FastAPI()
model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_positions=8192)).half().cuda().eval()


class Texts(BaseModel):
    length: int


@app.post("/score")
def score(texts: Texts):
    ids = torch.zeros(8, texts.length, dtype=torch.long, device="cuda")
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
    return {"scores": logits[:, -1, 0].tolist()}


uvicorn.run(app, port=int(sys.argv[1]))
