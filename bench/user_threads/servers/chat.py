# A FastAPI chat that keeps the keys and values of what was said, by session: PORT.
import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import GPT2Config, GPT2LMHeadModel

app = FastAPI()
model = GPT2LMHeadModel(GPT2Config(n_positions=65536)).half().cuda().eval()
sessions = {}


class Turn(BaseModel):
    session: str
    tokens: int


@app.post("/chat")
def chat(turn: Turn):
    ids = torch.zeros(1, turn.tokens, dtype=torch.long, device="cuda")
    with torch.no_grad():
        out = model(ids, past_key_values=sessions.get(turn.session), use_cache=True, logits_to_keep=1)
    sessions[turn.session] = out.past_key_values
    return {"said": "word"}


uvicorn.run(app, port=int(sys.argv[1]))
