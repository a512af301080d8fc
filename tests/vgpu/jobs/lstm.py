import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, words=20000, width=650):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, tokens, state=None):
        hidden, state = self.lstm(self.embed(tokens), state)
        return self.head(hidden), state


model = LanguageModel().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
state = None
for step in range(5):
    tokens = torch.randint(20000, (64, 71)).cuda()
    if state is not None:
        state = tuple(s.detach() for s in state)
    logits, state = model(tokens[:, :-1], state)
    loss = nn.functional.cross_entropy(logits.reshape(-1, 20000), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
print("perplexity", loss.exp().item())
