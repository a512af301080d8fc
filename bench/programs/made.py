# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder would otherwise download: checkpoints, a tokenizer, texts.

`python made.py NAME FOLDER` writes a checkpoint with the published sizes of a model: configuration, tokenizer and a
safetensors file whose header is whole and whose data are a hole. It needs no room on the disk, reads as zeros, and every
loader takes it.
"""

import json
import pathlib
import random
import sys

WORDS = [f"w{number}" for number in range(4000)]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
TEMPLATE = (
    "{% for message in messages %}<s> {{ message['role'] }} {{ message['content'] }} </s>{% endfor %}"
    "{% if add_generation_prompt %}<s> assistant {% endif %}"
)

# The figures of the published configurations.
MODELS = {
    "qwen2.5-0.5b": ("qwen2", {
        "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "max_position_embeddings": 32768, "tie_word_embeddings": True}),
    "tinyllama-1.1b": ("llama", {
        "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
        "num_key_value_heads": 4, "max_position_embeddings": 2048}),
    "llama-3.2-1b": ("llama", {
        "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072, "rope_theta": 500000.0, "tie_word_embeddings": True}),
    "llama-2-7b": ("llama", {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "max_position_embeddings": 4096}),
}  # fmt: skip


def texts(count, words=400, seed=0):
    """Texts of so many words; a word is a token."""
    choose = random.Random(seed)
    return [" ".join(choose.choices(WORDS, k=words)) for _ in range(count)]


def save_tokenizer(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate([*SPECIAL, "user", "assistant", "system", *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>", padding_side="left"
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.model_max_length = 2048
    tokenizer.save_pretrained(folder)


def save_weights(model, path, dtype="BF16", size=2):
    """A safetensors file of the model's names and shapes; shared tensors are written once."""
    header, position, seen = {"__metadata__": {"format": "pt"}}, 0, set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        end = position + tensor.numel() * size
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + position)


def main(name, folder):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kind, sizes = MODELS[name]
    config = AutoConfig.for_model(kind, **sizes, dtype="bfloat16", pad_token_id=0, bos_token_id=1, eos_token_id=2)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        model.tie_weights()
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    save_weights(model, folder / "model.safetensors")
    save_tokenizer(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
