import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(12)]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
static_input = torch.zeros(8192, 2048, device="cuda")
static_target = torch.zeros(8192, 2048, device="cuda")

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(static_input), static_target).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    static_loss = nn.functional.mse_loss(model(static_input), static_target)
    static_loss.backward()
    optimizer.step()

for _ in range(5):
    static_input.copy_(torch.rand(8192, 2048))
    graph.replay()
torch.cuda.synchronize()
print("loss", static_loss.item())
