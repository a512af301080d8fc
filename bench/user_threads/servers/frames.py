# A Flask server that decodes all frames of a video in one batch: PORT.
import sys

import torch
from flask import Flask, jsonify, request

app = Flask(__name__)
vae = torch.nn.Sequential(torch.nn.Conv2d(4, 64, 3, padding=1), torch.nn.Upsample(scale_factor=8), torch.nn.Conv2d(64, 3, 1)).cuda().eval()


def decode(latents):
    return vae(latents)


@app.post("/video")
@torch.no_grad()
def video():
    frames = request.get_json()["frames"]
    return jsonify(shape=list(decode(torch.ones(frames, 4, 64, 64, device="cuda")).shape))


app.run(port=int(sys.argv[1]))
