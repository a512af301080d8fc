# SPDX-License-Identifier: Apache-2.0
"""torch_geometric: GraphSAGE over a whole graph of 200,000 nodes and 4 million edges."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

nodes, edges = 200_000, 4_000_000
data = Data(
    x=torch.randn(nodes, 128), edge_index=torch.randint(0, nodes, (2, edges)), y=torch.randint(0, 40, (nodes,)),
    train_mask=torch.rand(nodes) < 0.5).to("cuda")  # fmt: skip
net = GraphSAGE(128, 256, num_layers=3, out_channels=40, dropout=0.5).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(8):
    net.train()
    out = net(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item(), flush=True)
net.eval()
with torch.no_grad():
    right = (net(data.x, data.edge_index).argmax(-1) == data.y)[~data.train_mask].float().mean().item()
print("accuracy", right)
