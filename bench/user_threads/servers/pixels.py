# A Flask server with attention between all positions of the latents, written out: PORT.
import sys

import torch
from flask import Flask, jsonify, request
from torch import nn

app = Flask(__name__)


class Attention(nn.Module):
    def __init__(self, heads=8, width=320):
        super().__init__()
        self.heads, self.entry, self.qkv = heads, nn.Linear(4, width), nn.Linear(width, 3 * width)

    def forward(self, x):
        query, key, value = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(self.entry(x)).chunk(3, -1))
        return ((query @ key.transpose(-1, -2)).softmax(-1) @ value).mean()


unet = Attention().half().cuda().eval()


@app.post("/picture")
@torch.no_grad()
def picture():
    side = request.get_json()["size"] // 8
    for _ in range(4):
        unet(torch.ones(2, side * side, 4, dtype=torch.half, device="cuda"))
    return jsonify(size=side * 8)


app.run(port=int(sys.argv[1]))
