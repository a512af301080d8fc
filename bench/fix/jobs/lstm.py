import torch
from data import Tokens
from torch import nn
from torch.utils.data import DataLoader

WORDS, WIDTH = 33000, 1024


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, num_layers=2, dropout=0.4, batch_first=True)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


model = LanguageModel().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for tokens in DataLoader(Tokens(12800, 129, WORDS), batch_size=256, shuffle=True):
    tokens = tokens.cuda()
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, WORDS), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"loss {loss.item():.3f}")
