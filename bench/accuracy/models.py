# SPDX-License-Identifier: Apache-2.0
"""The models of measured.csv, built from configurations written out here: nothing is downloaded, weights are random.

The figures of the Hugging Face models are their public hub configurations; what is not named is the library's default.
PARAMETERS holds well-known counts; `job.py --count` compares them.
"""

PARAMETERS = {
    "VGG16": 138_357_544,
    "VGG19": 143_667_240,
    "ResNet101": 44_549_160,
    "ResNet152": 60_192_808,
    "MobileNetV2": 3_504_872,
    "MobeNetV3Small": 1_528_106,
    "MobeNetV3Large": 4_214_842,
    "MnasNet": 3_115_122,
    "ConvNeXtTiny": 28_589_128,
    "ConvNeXtBase": 88_591_464,
    "RegNetX400MF": 5_495_976,
    "RegNetY400MF": 4_344_144,
    "openai-community/gpt2": 124_439_808,
    "distilbert/distilgpt2": 81_912_576,
    "EleutherAI/gpt-neo-125M": 125_198_592,
    "facebook/opt-125m": 125_239_296,
    "facebook/opt-350m": 331_196_416,
    "cerebras/Cerebras-GPT-111M": 111_050_496,
    "T5-small": 60_506_624,
    "t5-base": 222_903_552,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": 1_777_088_000,
    "google/gemma-2-2b-it": 2_614_341_888,
    "meta-llama/Llama-3.2-3B-Instruct": 3_212_749_824,
    "Qwen/Qwen3-4B": 4_022_468_096,
}

# name: (function of torchvision.models, number of classes)
CONVOLUTIONAL = {
    "VGG16": ("vgg16", 1000),
    "VGG19": ("vgg19", 1000),
    "ResNet101": ("resnet101", 1000),
    "ResNet152": ("resnet152", 1000),
    "MobileNetV2": ("mobilenet_v2", 1000),
    "MobeNetV3Small": ("mobilenet_v3_small", 10),
    "MobeNetV3Large": ("mobilenet_v3_large", 10),
    "MnasNet": ("mnasnet1_0", 10),
    "ConvNeXtTiny": ("convnext_tiny", 1000),
    "ConvNeXtBase": ("convnext_base", 1000),
    "RegNetX400MF": ("regnet_x_400mf", 1000),
    "RegNetY400MF": ("regnet_y_400mf", 1000),
}

# name: (model type, its configuration)
TRANSFORMERS = {
    "openai-community/gpt2": ("gpt2", {}),
    "distilbert/distilgpt2": ("gpt2", {"n_layer": 6}),
    "cerebras/Cerebras-GPT-111M": (
        "gpt2",
        {"n_layer": 10, "n_inner": 3072, "n_positions": 2048, "activation_function": "gelu", "resid_pdrop": 0.0,
         "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    ),
    "EleutherAI/gpt-neo-125M": (
        "gpt_neo",
        {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]],
         "max_position_embeddings": 2048, "window_size": 256, "vocab_size": 50257, "attention_dropout": 0,
         "embed_dropout": 0, "resid_dropout": 0},
    ),
    "facebook/opt-125m": (
        "opt",
        {"hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 50272,
         "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "do_layer_norm_before": True, "dropout": 0.1,
         "attention_dropout": 0.0},
    ),
    "facebook/opt-350m": (
        "opt",
        {"hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 50272,
         "max_position_embeddings": 2048, "word_embed_proj_dim": 512, "do_layer_norm_before": False, "dropout": 0.1,
         "attention_dropout": 0.0},
    ),
    "T5-small": (
        "t5",
        {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "vocab_size": 32128,
         "decoder_start_token_id": 0},
    ),
    "t5-base": (
        "t5",
        {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12, "vocab_size": 32128,
         "decoder_start_token_id": 0},
    ),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": (
        "qwen2",
        {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
         "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 131072, "rope_theta": 10000,
         "tie_word_embeddings": False, "rms_norm_eps": 1e-6, "use_sliding_window": False},
    ),
    "google/gemma-2-2b-it": (
        "gemma2",
        {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
         "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000, "max_position_embeddings": 8192,
         "sliding_window": 4096, "query_pre_attn_scalar": 256},
    ),
    "meta-llama/Llama-3.2-3B-Instruct": (
        "llama",
        {"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
         "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "max_position_embeddings": 131072,
         "rope_theta": 500000.0, "tie_word_embeddings": True, "rms_norm_eps": 1e-5,
         "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                          "original_max_position_embeddings": 8192, "rope_type": "llama3"}},
    ),
    "Qwen/Qwen3-4B": (
        "qwen3",
        {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
         "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960,
         "rope_theta": 1000000, "tie_word_embeddings": True, "rms_norm_eps": 1e-6},
    ),
}

# These pad every line to the longest of a thousand: their batches always have 128 tokens, pads included.
ALWAYS_FULL = {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "Qwen/Qwen3-4B"}


def build(name):
    """The model with random weights in fp32, on the CPU."""
    if name in CONVOLUTIONAL:
        import torchvision

        function, classes = CONVOLUTIONAL[name]
        return getattr(torchvision.models, function)(weights=None, num_classes=classes)
    import transformers

    kind, figures = TRANSFORMERS[name]
    config = transformers.AutoConfig.for_model(kind, **figures)
    auto = transformers.AutoModelForSeq2SeqLM if kind == "t5" else transformers.AutoModelForCausalLM
    return auto.from_config(config)
