# A Gradio chat: what was said before is part of each prompt. PORT.
import sys

import gradio as gr
import torch


class Decoder(torch.nn.Module):
    def __init__(self, width=512, words=32000, layers=4):
        super().__init__()
        self.table = torch.nn.Embedding(words, width)
        layer = torch.nn.TransformerEncoderLayer(width, 8, batch_first=True, norm_first=True)
        self.body = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device, dtype=self.table.weight.dtype)
        return self.body(self.table(ids), mask=mask)[:, -1] @ self.table.weight.T


model = Decoder().half().cuda().eval()


def tokens_of(history, message):
    words = sum(len(str(turn["content"]).split()) for turn in history) + len(message.split())
    return torch.zeros(1, 16 * words, dtype=torch.long, device="cuda")


def answer(message, history):
    ids = tokens_of(history, message)
    start = ids.shape[1]
    with torch.no_grad():
        for _ in range(8):
            ids = torch.cat([ids, model(ids).argmax(-1, keepdim=True)], 1)
    return " ".join("word" for _ in range(ids.shape[1] - start))


gr.ChatInterface(answer).launch(server_port=int(sys.argv[1]))
