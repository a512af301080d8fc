# A page from which a training is started, an adapter or everything: PORT.
import sys

import torch
from flask import Flask, jsonify, request
from torch import nn

app = Flask(__name__)
model = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(16))).cuda()
adapter = nn.Sequential(nn.Linear(2048, 8, bias=False), nn.Linear(8, 2048, bias=False)).cuda()


@app.post("/train")
def train():
    kind = request.get_json()["kind"]
    model.requires_grad_(kind == "full")
    trained = list(model.parameters()) if kind == "full" else list(adapter.parameters())
    optimizer = torch.optim.AdamW(trained)
    for _ in range(3):
        x = torch.ones(8, 2048, device="cuda")
        (model(x) + adapter(x)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return jsonify(trained=sum(each.numel() for each in trained))


app.run(port=int(sys.argv[1]))
