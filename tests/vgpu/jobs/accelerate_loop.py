import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
model = BertForSequenceClassification(BertConfig(num_hidden_layers=6, num_labels=3))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
tokens = torch.randint(30000, (256, 256))
labels = torch.randint(3, (256,))
loader = DataLoader(TensorDataset(tokens, labels), batch_size=32, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

model.train()
for tokens, labels in loader:
    with accelerator.accumulate(model):
        loss = model(input_ids=tokens, labels=labels).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
accelerator.print("finished", loss.item())
