# SPDX-License-Identifier: Apache-2.0
"""vLLM offline (FlashInfer's sampler off, which wants nvcc) with dummy weights: its own profile run, the KV cache it sizes from what is free, then requests."""

import argparse

from made import texts
from vllm import LLM, SamplingParams

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--length", type=int, default=2048)
    options = parser.parse_args()
    llm = LLM(model=options.model, load_format="dummy", enforce_eager=options.eager, gpu_memory_utilization=0.9,
              max_model_len=options.length)  # fmt: skip
    answers = llm.generate(texts(8, 64), SamplingParams(max_tokens=16, temperature=0.0, ignore_eos=True))
    print(len(answers), "answers")
