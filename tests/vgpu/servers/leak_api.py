# A FastAPI server that keeps the features of every request: 8 x 512 x 512 numbers of 32 bits, 8 MiB.
from contextlib import asynccontextmanager

import torch
from fastapi import FastAPI
from pydantic import BaseModel

history = []


class Embedder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(50000, 512)
        self.body = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512))

    def forward(self, ids):
        return self.body(self.table(ids))


@asynccontextmanager
async def lifespan(app):
    app.state.model = Embedder().eval().cuda()
    yield


app = FastAPI(lifespan=lifespan)


class Texts(BaseModel):
    length: int


@app.post("/embed")
def embed(texts: Texts):
    ids = torch.zeros(8, texts.length, dtype=torch.long, device="cuda")
    with torch.no_grad():
        features = app.state.model(ids)
    history.append(features)
    return {"shape": list(features.shape)}
