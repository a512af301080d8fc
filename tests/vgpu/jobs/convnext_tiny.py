import torch
import torch.nn.functional as F
from torchvision.models import convnext_tiny

device = torch.device("cuda:0")
model = convnext_tiny(num_classes=100).to(device).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)

for step in range(4):
    images = torch.rand(24, 3, 224, 224, device=device)
    labels = torch.randint(100, (24,), device=device)
    loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print("done", loss.item())
