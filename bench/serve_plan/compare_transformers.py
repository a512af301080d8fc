#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what serve-plan says a checkpoint has, from config.json alone, with the models that transformers builds of the same configuration on the
meta device (an oracle that shares no code with us).

    $(tools/envs --path prog-vllm) bench/serve_plan/compare_transformers.py

Sizes are small: what is compared is which tensors there are. Ends with 1 when one differs.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

TONNAGE = pathlib.Path(__file__).resolve().parents[2] / "build/bin/tonnage"
BASE = {"vocab_size": 1000, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 2, "max_position_embeddings": 2048, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 96, "shared_expert_intermediate_size": 128, "decoder_sparse_step": 1,
           "mlp_only_layers": []}  # fmt: skip
LATENT = {"moe_intermediate_size": 96, "n_shared_experts": 2, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
          "kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32, "first_k_dense_replace": 1,
          "num_key_value_heads": 8}  # fmt: skip
DELTA = {"head_dim": 64, "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
         "linear_conv_kernel_dim": 4}  # fmt: skip
MODELS = {
    "llama": {},
    "mistral": {"head_dim": 64, "sliding_window": None},
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen2": {"tie_word_embeddings": True},
    "qwen2_moe": EXPERTS,
    "qwen3": {"head_dim": 64},
    "qwen3_moe": {**EXPERTS, "head_dim": 64},
    "qwen3_next": {**EXPERTS, **DELTA},
    "gemma": {"head_dim": 64},
    "gemma2": {"head_dim": 64},
    "gemma3_text": {"head_dim": 64},
    "phi3": {"pad_token_id": 0},
    "granite": {},
    "granitemoehybrid": {"num_local_experts": 0, "shared_intermediate_size": 384, "mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 16,
                         "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2, "layer_types": ["mamba", "mamba", "attention", "mamba"]},
    "olmo2": {},
    "smollm3": {},
    "gpt_oss": {"head_dim": 64, "num_local_experts": 8, "num_experts_per_tok": 2},
    "deepseek_v2": {**LATENT, "q_lora_rank": None, "topk_method": "greedy"},
    "deepseek_v3": {**LATENT, "q_lora_rank": 96},
    "jamba": {"attn_layer_period": 4, "attn_layer_offset": 2, "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 4,
              "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 16},
    "bamba": {"attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4},
    "nemotron_h": {"hybrid_override_pattern": "M-*-", "mamba_num_heads": 8, "mamba_head_dim": 32, "ssm_state_size": 16, "n_groups": 2, "conv_kernel": 4,
                   "head_dim": 32},
    "mamba": {"state_size": 16, "expand": 2, "conv_kernel": 4, "intermediate_size": 512, "time_step_rank": 16},
    "falcon_mamba": {"state_size": 16, "expand": 2, "conv_kernel": 4, "intermediate_size": 512, "time_step_rank": 16},
    "mamba2": {"num_heads": 16, "head_dim": 32, "state_size": 16, "n_groups": 2, "conv_kernel": 4, "expand": 2},
    "falcon": {"num_kv_heads": 2, "new_decoder_architecture": True, "ffn_hidden_size": 1024},
    "gpt_bigcode": {"n_positions": 512, "n_embd": 256, "n_layer": 4, "n_head": 8, "n_inner": 1024, "multi_query": True},
    "gpt2": {"n_positions": 512, "n_embd": 256, "n_layer": 4, "n_head": 8},
}  # fmt: skip


# What these models name otherwise.
OWN_NAMES = {"falcon": ("intermediate_size",), "gpt_bigcode": ("intermediate_size",), "gpt2": ("intermediate_size", "num_key_value_heads")}


def planned_bytes(folder):
    done = subprocess.run([TONNAGE, "serve-plan", folder, "--json"], capture_output=True, text=True)
    if not done.stdout:
        return done.stderr.strip()
    document = json.loads(done.stdout)
    return document["model"]["stored_bytes"] if document["model"]["stored_bytes"] is not None else document["model"]["notes"]


def built_bytes(kind, sizes):
    base = {name: value for name, value in BASE.items() if name not in OWN_NAMES.get(kind, ())}
    config = AutoConfig.for_model(kind, **{**base, **sizes}, dtype="bfloat16")
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        model.tie_weights()
    config.architectures = [type(model).__name__]
    names = dict(model.named_parameters(remove_duplicate=True))
    names.update({name: tensor for name, tensor in model.named_buffers() if name.endswith("e_score_correction_bias")})
    total = sum(tensor.numel() * (4 if name.endswith("e_score_correction_bias") else 2) for name, tensor in names.items())
    return config, total


def main():
    wrong = 0
    print(f"transformers {transformers.__version__}")
    for kind, sizes in MODELS.items():
        try:
            config, built = built_bytes(kind, sizes)
        except Exception as error:  # a release without this model, or with other fields
            print(f"{kind:18} NOT BUILT: {type(error).__name__}: {str(error)[:90]}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            config.save_pretrained(folder)
            planned = planned_bytes(folder)
        wrong += planned != built
        print(f"{kind:18} {built:12} {'the same' if planned == built else f'serve-plan says {planned}'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
