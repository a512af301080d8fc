# SPDX-License-Identifier: Apache-2.0
"""make.py FOLDER MODEL headers|holes: configuration, tokenizer and safetensors of a model at its real size, without values.

`headers`: files end after their header. `holes`: they have their whole length, all of it a hole, but for the settings that bitsandbytes
keeps as JSON in a tensor: without them nobody can read such a checkpoint. Names and shapes are those of the checkpoints as they are
published (Mixtral: one matrix an expert).
"""

import json
import pathlib
import struct
import sys

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "I32": 4, "U8": 1}
SHARD = 5 * 10**9
SETTINGS = ".quant_state.bitsandbytes__nf4"
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "num_key_value_heads": 8,
         "max_position_embeddings": 8192, "rope_theta": 500000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
         "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
B8 = {**LLAMA, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32}
B8_32K = {**B8, "max_position_embeddings": 32768}
B13 = {**LLAMA, "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40, "num_attention_heads": 40,
       "num_key_value_heads": 40, "vocab_size": 32000, "max_position_embeddings": 4096, "rope_theta": 10000.0}  # fmt: skip
B70 = {**LLAMA, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64}
MIXTRAL = {**B8, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8,
           "num_experts_per_tok": 2, "rope_theta": 1e6, "max_position_embeddings": 32768, "sliding_window": None}  # fmt: skip
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4",
       "bnb_4bit_use_double_quant": True, "bnb_4bit_compute_dtype": "bfloat16", "bnb_4bit_quant_storage": "uint8"}  # fmt: skip
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True, "checkpoint_format": "gptq"}


def linears(config):
    """(name, out, in) of a layer's matrices, and whether it is quantised."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    yield from ((f"self_attn.{name}_proj", out, hidden) for name, out in (("q", hidden), ("k", keys), ("v", keys), ("o", hidden)))
    if "num_local_experts" in config:
        yield "block_sparse_moe.gate", config["num_local_experts"], hidden
        for expert in range(config["num_local_experts"]):
            for name, out, into in (("w1", inner, hidden), ("w2", hidden, inner), ("w3", inner, hidden)):
                yield f"block_sparse_moe.experts.{expert}.{name}", out, into
    else:
        yield from (("mlp.gate_proj", inner, hidden), ("mlp.up_proj", inner, hidden), ("mlp.down_proj", hidden, inner))


def settings(out, into):
    """What QuantState.as_dict(packed=True) packs."""
    return json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [out, into], "nested_blocksize": 256,
                       "nested_dtype": "float32", "nested_offset": 0.0}).encode()  # fmt: skip


def quantised(name, out, into, how):
    """The tensors that a quantised matrix is kept as."""
    if how == "nf4":
        blocks = out * into // 64
        return {f"{name}.weight": ("U8", [out * into // 2, 1]), f"{name}.weight.absmax": ("U8", [blocks]),
                f"{name}.weight.nested_absmax": ("F32", [blocks // 256]), f"{name}.weight.nested_quant_map": ("F32", [256]),
                f"{name}.weight.quant_map": ("F32", [16]),
                f"{name}.weight{SETTINGS}": ("U8", [len(settings(out, into))])}  # fmt: skip
    groups = into // 128
    return {f"{name}.qweight": ("I32", [into // 8, out]), f"{name}.qzeros": ("I32", [groups, out // 8]),
            f"{name}.scales": ("F16", [groups, out]), f"{name}.g_idx": ("I32", [into])}  # fmt: skip


def language_model(config, how=None):
    """Its tensors, and the values of those that have any."""
    dtype, hidden = ("F16" if how == "gptq" else "BF16"), config["hidden_size"]
    tensors = {"model.embed_tokens.weight": (dtype, [config["vocab_size"], hidden])}
    for number in range(config["num_hidden_layers"]):
        layer = f"model.layers.{number}."
        for name, out, into in linears(config):
            tensors.update(quantised(layer + name, out, into, how) if how else {f"{layer}{name}.weight": (dtype, [out, into])})
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{layer}{norm}.weight"] = (dtype, [hidden])
    values = {f"model.layers.{number}.{name}.weight{SETTINGS}": settings(out, into)
              for number in range(config["num_hidden_layers"]) for name, out, into in linears(config)}  # fmt: skip
    return {**tensors, "model.norm.weight": (dtype, [hidden]), "lm_head.weight": (dtype, [config["vocab_size"], hidden])}, values


def write(folder, tensors, kind, stem="model", values=None):
    """Writes the files of some tensors, in shards of 5 GB, with their index."""
    shards, size = [{}], 0
    for name, (dtype, shape) in tensors.items():
        length = SIZES[dtype]
        for extent in shape:
            length *= extent
        if size and size + length > SHARD:
            shards.append({})
            size = 0
        shards[-1][name] = {"dtype": dtype, "shape": shape, "data_offsets": [size, size + length]}
        size += length
    index = {}
    for number, shard in enumerate(shards, 1):
        name = f"{stem}.safetensors" if len(shards) == 1 else f"{stem}-{number:05}-of-{len(shards):05}.safetensors"
        header = json.dumps({"__metadata__": {"format": "pt"}, **shard}).encode()
        header += b" " * (-len(header) % 8)
        with open(folder / name, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            if kind == "holes":
                file.truncate(8 + len(header) + max(row["data_offsets"][1] for row in shard.values()))
                for key in shard.keys() & (values or {}).keys():
                    file.seek(8 + len(header) + shard[key]["data_offsets"][0])
                    file.write(values[key])
        index.update(dict.fromkeys(shard, name))
    if len(shards) > 1:
        put(folder / f"{stem}.safetensors.index.json", {"metadata": {}, "weight_map": index})


def put(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def tokenizer(folder):
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, "once": 3, "upon": 4, "a": 5, "time": 6}
    put(folder / "tokenizer.json", {"version": "1.0", "added_tokens": [], "normalizer": None,
                                    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
                                    "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"}})  # fmt: skip
    put(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>",
                                           "eos_token": "</s>", "pad_token": "</s>"})  # fmt: skip


def adapter(folder, kind):
    """Rank 16 on the queries and values of the 8 B."""
    put(folder / "adapter_config.json", {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 16, "lora_alpha": 32,
                                         "target_modules": ["q_proj", "v_proj"], "base_model_name_or_path": "llama8b"})  # fmt: skip
    tensors = {}
    for number in range(32):
        for name, out in (("q_proj", 4096), ("v_proj", 1024)):
            at = f"base_model.model.model.layers.{number}.self_attn.{name}"
            tensors[f"{at}.lora_A.weight"] = ("F32", [16, 4096])
            tensors[f"{at}.lora_B.weight"] = ("F32", [out, 16])
    write(folder, tensors, kind, "adapter_model")


def sdxl(folder, kind):
    """Shapes from the models that the published configuration builds, on no device."""
    import torch
    from diffusers import AutoencoderKL, EulerDiscreteScheduler, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    text = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "projection_dim": 768,
            "vocab_size": 49408, "max_position_embeddings": 77, "bos_token_id": 0, "eos_token_id": 2}  # fmt: skip
    large = {**text, "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_attention_heads": 20,
             "projection_dim": 1280, "hidden_act": "gelu"}  # fmt: skip
    with torch.device("meta"):
        models = {
            "unet": UNet2DConditionModel(
                sample_size=128, down_block_types=["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
                up_block_types=["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"], block_out_channels=[320, 640, 1280],
                cross_attention_dim=2048, attention_head_dim=[5, 10, 20], transformer_layers_per_block=[1, 2, 10],
                use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=256,
                projection_class_embeddings_input_dim=2816),
            "vae": AutoencoderKL(
                down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4,
                block_out_channels=[128, 256, 512, 512], layers_per_block=2, sample_size=1024, scaling_factor=0.13025,
                force_upcast=False),
            "text_encoder": CLIPTextModel(CLIPTextConfig(**text)),
            "text_encoder_2": CLIPTextModelWithProjection(CLIPTextConfig(**large)),
        }  # fmt: skip
    for name, model in models.items():
        place = folder / name
        place.mkdir(parents=True)
        (model.save_config if name in ("unet", "vae") else model.config.save_pretrained)(place)
        write(place, {key: ("F16", list(value.shape)) for key, value in model.state_dict().items()}, kind,
              "model" if name.startswith("text") else "diffusion_pytorch_model")  # fmt: skip
    for name in ("tokenizer", "tokenizer_2"):
        letters = [*"abcdefghijklmnopqrstuvwxyz", *(letter + "</w>" for letter in "abcdefghijklmnopqrstuvwxyz")]
        put(folder / name / "vocab.json", {word: at for at, word in enumerate(["<|startoftext|>", "<|endoftext|>", *letters])})
        (folder / name / "merges.txt").write_text("#version: 0.2\n")
        put(folder / name / "tokenizer_config.json", {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77,
                                                      "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>",
                                                      "unk_token": "<|endoftext|>", "pad_token": "<|endoftext|>"})  # fmt: skip
    EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear").save_pretrained(folder / "scheduler")
    put(folder / "model_index.json", {
        "_class_name": "StableDiffusionXLPipeline", "_diffusers_version": "0.42.1", "force_zeros_for_empty_prompt": True,
        "scheduler": ["diffusers", "EulerDiscreteScheduler"], "text_encoder": ["transformers", "CLIPTextModel"],
        "text_encoder_2": ["transformers", "CLIPTextModelWithProjection"], "tokenizer": ["transformers", "CLIPTokenizer"],
        "tokenizer_2": ["transformers", "CLIPTokenizer"], "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"]})  # fmt: skip


def make(folder, model, kind):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    if model == "sdxl":
        return sdxl(folder, kind)
    if model == "lora":
        make(folder / "base", "llama8b", kind)
        return adapter(folder, kind)
    config, how = {"llama8b": (B8, None), "llama8b_32k": (B8_32K, None), "llama13b": (B13, None), "llama70b": (B70, None), "mixtral": (MIXTRAL, None), "nf4": (B8, "nf4"),
                   "gptq": (B8, "gptq")}[model]  # fmt: skip
    if how:
        config = {**config, "quantization_config": NF4 if how == "nf4" else GPTQ}
    put(folder / "config.json", {**config, "torch_dtype": "float16" if how == "gptq" else "bfloat16"})
    tokenizer(folder)
    tensors, values = language_model(config, how)
    write(folder, tensors, kind, values=values)


if __name__ == "__main__":
    make(*sys.argv[1:4])
