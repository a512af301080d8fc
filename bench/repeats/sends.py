# SPDX-License-Identifier: Apache-2.0
"""What leaves a run: sends.py TONNAGE runs small programs under it, each of which tries to send something to a server of this
machine, and prints what arrived there.

The server counts what writes; what only reads is free to arrive.
"""

import http.server
import os
import subprocess
import sys
import tempfile
import threading

arrived = []


class Server(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        arrived.append(f"{self.command} {self.path}")
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
HOST = f"127.0.0.1:{server.server_port}"
URL = f"http://{HOST}"
TORCH = "import torch\nheld = torch.randn(64, 64, device='cuda') @ torch.randn(64, 64, device='cuda')\n"  # from here on it holds what a kernel made
HUB = f"import os\nos.environ.update(HF_ENDPOINT='{URL}', HF_TOKEN='hf_x')\n"
CALLS = """
for call in (lambda: delete_repo("a/b"), lambda: HfApi().upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id="a/b"),
             lambda: HfApi().create_webhook(url="http://x", watched=[])):
    try:
        call()
    except Exception as error:
        print(type(error).__name__)
"""
NAMES = "from huggingface_hub import HfApi, delete_repo\n"
TRIES = {
    "hub, no torch": HUB + NAMES + CALLS,
    "hub, imported before torch": HUB + NAMES + TORCH + CALLS,
    "hub, imported after torch": HUB + TORCH + NAMES + CALLS,
    "hub, in a child without torch": HUB + TORCH + f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {NAMES + CALLS!r}])",
    "urllib, POST": TORCH + f"import urllib.request\nurllib.request.urlopen('{URL}/post', data=b'x')",
    "requests, PUT": TORCH + f"import requests\nrequests.put('{URL}/put', data=b'x')",
    "curl": TORCH + f"import subprocess\nsubprocess.run(['curl', '-s', '-d', 'x', '{URL}/curl'])",
    "wandb, online in the code": f"import os\nos.environ.update(WANDB_BASE_URL='{URL}', WANDB_API_KEY='a' * 40)\n" + TORCH
    + "import wandb\nrun = wandb.init(project='p', mode='online', settings=wandb.Settings(init_timeout=9))\nrun.log({'loss': 1})\nrun.finish()",
    "wandb, by its variable": f"import os\nos.environ.update(WANDB_MODE='online', WANDB_BASE_URL='{URL}', WANDB_API_KEY='a' * 40)\n"
    + TORCH + "import wandb\nrun = wandb.init(project='p', settings=wandb.Settings(init_timeout=9))\nrun.log({'loss': 1})\nrun.finish()",
    "mlflow, a server in the code": TORCH + f"import mlflow\nmlflow.set_tracking_uri('{URL}')\nmlflow.set_experiment('e')\n"
    "mlflow.start_run()\nmlflow.log_metric('loss', 1)\nmlflow.end_run()",
}
for name, program in TRIES.items():
    arrived.clear()
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.argv[1], "run", "--gpu=rtx3060", "--", sys.executable, "-c", program]
        done = subprocess.run(words, cwd=folder, env={**os.environ, "HOME": folder}, capture_output=True, text=True)
    sent = [line for line in arrived if not line.startswith("GET")]
    said = [line.strip() for line in done.stderr.splitlines() if line.startswith("  Held back")]
    print(f"{name}: {'ARRIVED ' + ', '.join(sent) if sent else 'nothing arrived'}; said: {said[:1]}", flush=True)
