# A Flask server whose work depends on the request: PORT [catch | say | hard]. A request that does not fit is answered 500, done in parts, or answered 200 with the
# error; `hard`: asked to end it is gone at once.
import os
import signal
import sys

import torch
from flask import Flask, jsonify, request

app = Flask(__name__)
if "hard" in sys.argv:
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda().eval()


@torch.no_grad()
def run(rows):
    return model(torch.ones(rows, 1024, device="cuda"))


@app.post("/features")
def features():
    rows = request.get_json()["rows"]
    try:
        run(rows)
    except torch.cuda.OutOfMemoryError as error:
        if "say" in sys.argv:
            return jsonify(error=str(error))
        if "catch" not in sys.argv:
            return jsonify(error="the card is full"), 500
        for _ in range(16):
            run(rows // 16)
    return jsonify(rows=rows)


app.run(port=int(sys.argv[1]))
