# a model in 16 bits that is too large for the card, and is not trained
import torch

model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096, dtype=torch.bfloat16) for _ in range(40))).eval()
with torch.no_grad():
    model = model.to("cuda")
    model(torch.randn(4, 4096, device="cuda", dtype=torch.bfloat16))
