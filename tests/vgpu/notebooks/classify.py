# %% [markdown]
# Train a classifier on pictures.
# %%
!echo shell works
import torch, torchvision
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
device = "cuda"
# %%
pictures = torch.randn(64, 3, 64, 64)
labels = torch.randint(10, (64,))
loader = DataLoader(TensorDataset(pictures, labels), batch_size=16, shuffle=True)
# %%
model = torchvision.models.resnet18(num_classes=10).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
# %%
%%time
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("trained")
# %%
model.eval()
with torch.no_grad():
    right = sum((model(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in loader)
print("evaluated")
