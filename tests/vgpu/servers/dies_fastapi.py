# A server that does not survive a request that does not fit: PORT.
import os
import sys

import torch
import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.get("/work/{mib}")
def work(mib: int):
    try:
        return {"bytes": torch.zeros(mib << 18, device="cuda").nbytes}
    except torch.cuda.OutOfMemoryError:
        os._exit(3)


uvicorn.run(app, port=int(sys.argv[1]))
