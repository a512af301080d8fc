# SPDX-License-Identifier: Apache-2.0
"""Ten models with their data, as (model, optimizer's class, loss of a batch, one sample). For train.py."""
import torch
import torchvision
import transformers
from torch import nn
from torch.nn import functional


def _classifier(name, **figures):
    def make():
        sample = torch.zeros(3, 224, 224), torch.zeros((), dtype=torch.long)
        model = getattr(torchvision.models, name)(num_classes=100, **figures)
        return model, torch.optim.SGD, lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]), sample

    return make


def _language(model_of, length, words):
    def make():
        return model_of(), torch.optim.AdamW, lambda model, batch: model(input_ids=batch, labels=batch).loss, torch.zeros(
            length, dtype=torch.long)

    return make


class Recurrent(nn.Module):
    def __init__(self, words=10000, width=512):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


def _recurrent():
    def loss(model, batch):
        return functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    return Recurrent(), torch.optim.Adam, loss, torch.zeros(65, dtype=torch.long)


def _autoencoder():
    layers = [nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU()) for a, b in ((3, 64), (64, 64), (64, 3))]
    return nn.Sequential(*layers), torch.optim.Adam, lambda model, batch: functional.mse_loss(model(batch), batch), torch.zeros(
        3, 256, 256)


MODELS = {
    "resnet18": _classifier("resnet18"),
    "resnet50": _classifier("resnet50"),
    "mobilenet": _classifier("mobilenet_v3_large"),
    "vit": _classifier("vit_b_16"),
    "convnext": _classifier("convnext_tiny"),
    "gpt2": _language(lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=6)), 256, 50257),
    "llama": _language(lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=512, intermediate_size=1408, num_hidden_layers=6, num_attention_heads=8)).bfloat16(), 512, 32000),
    "bert": _language(lambda: transformers.BertForMaskedLM(transformers.BertConfig(num_hidden_layers=6)), 256, 30522),
    "lstm": _recurrent,
    "autoencoder": _autoencoder,
}
