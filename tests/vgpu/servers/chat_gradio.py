# A Gradio chat: what was said before is part of each prompt. PORT.
import sys

import gradio as gr
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_head=8, n_embd=512, n_positions=8192)).half().cuda().eval()


def tokens_of(history, message):
    words = sum(len(str(turn["content"]).split()) for turn in history) + len(message.split())
    return torch.zeros(1, 16 * words, dtype=torch.long, device="cuda")


def answer(message, history):
    ids = tokens_of(history, message)
    with torch.no_grad():
        out = model.generate(ids, max_new_tokens=8, do_sample=False, pad_token_id=0)
    return " ".join("word" for _ in range(out.shape[1] - ids.shape[1]))


gr.ChatInterface(answer).launch(server_port=int(sys.argv[1]))
