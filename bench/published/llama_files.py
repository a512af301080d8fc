# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Llama's shape as headers with holes, by the names that Hugging Face's have: full length, no bytes."""

import dataclasses
import json


@dataclasses.dataclass
class Llama:
    """Sizes of a model; keys: how wide keys and values are; tied: the embedding is the output, too."""

    layers: int
    width: int
    inner: int
    vocabulary: int
    keys: int
    heads: int
    tied: bool = False

    def shapes(self):
        """(name, shape) of each tensor."""
        yield "model.embed_tokens.weight", [self.vocabulary, self.width]
        for layer in range(self.layers):
            for name, shape in (
                ("self_attn.q_proj", [self.width, self.width]), ("self_attn.k_proj", [self.keys, self.width]),
                ("self_attn.v_proj", [self.keys, self.width]), ("self_attn.o_proj", [self.width, self.width]),
                ("mlp.gate_proj", [self.inner, self.width]), ("mlp.up_proj", [self.inner, self.width]),
                ("mlp.down_proj", [self.width, self.inner]), ("input_layernorm", [self.width]),
                ("post_attention_layernorm", [self.width]),
            ):  # fmt: skip
                yield f"model.layers.{layer}.{name}.weight", shape
        yield "model.norm.weight", [self.width]
        if not self.tied:
            yield "lm_head.weight", [self.vocabulary, self.width]

    def write_config(self, folder):
        (folder / "config.json").write_text(json.dumps({
            "hidden_size": self.width, "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
            "num_key_value_heads": self.keys * self.heads // self.width, "head_dim": self.width // self.heads,
            "vocab_size": self.vocabulary, "tie_word_embeddings": self.tied, "model_type": "llama"}))  # fmt: skip


def write_file(path, shapes):
    """A safetensors file of bfloat16."""
    header, position = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes:
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [position, position + size]}
        position += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + position)
