# A Gradio page that keeps each picture that it made: PORT.
import sys

import gradio as gr
import torch

net = torch.nn.Conv2d(4, 16, 3, padding=1).cuda()
gallery = []


def generate(prompt):
    with torch.no_grad():
        picture = net(torch.ones(1, 4, 1024, 1024, device="cuda"))
    gallery.append(picture)
    return f"{len(prompt)} letters"


gr.Interface(generate, "text", "text", api_name="generate").launch(server_port=int(sys.argv[1]))
