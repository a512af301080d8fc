# a small model over 50,257 words: the loss fills the card
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer, self.head = torch.nn.Embedding(50257, 128), torch.nn.Linear(128, 128), torch.nn.Linear(128, 50257)

    def forward(self, tokens):
        return self.head(self.layer(self.words(tokens)))


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    tokens = torch.zeros(8, 1024, dtype=torch.long, device="cuda")
    torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
