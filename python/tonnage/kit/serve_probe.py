# SPDX-License-Identifier: Apache-2.0
"""Starts vLLM as `tonnage serve-plan --verify` planned it, with made-up weights, and says how it laid out its cache.

    serve_probe.py ARGUMENTS    (a JSON object: vllm.LLM's arguments)

Prints lines "tonnage-serve: {...}": the release, then the cache as soon as the engine has decided on it, then that it has started. A part that this
release has elsewhere ends with an exception, which `--verify` reports.
"""

import json
import os
import sys

# The engine's core in this process, so that its decision can be read; the sampler of FlashInfer compiles with nvcc.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def tell(**what):
    print("tonnage-serve: " + json.dumps(what), flush=True)


def main():
    import vllm
    from vllm.v1.engine import core

    decide = core.get_kv_cache_configs

    def decide_and_tell(config, specs, available):
        memory = min(available)
        layouts = decide(config, specs, available)
        length = config.model_config.max_model_len
        tell(blocks=layouts[0].num_blocks, block_tokens=config.cache_config.block_size, available=memory, max_model_len=length)
        return layouts

    core.get_kv_cache_configs = decide_and_tell
    tell(version=vllm.__version__)
    vllm.LLM(load_format="dummy", skip_tokenizer_init=True, **json.loads(sys.argv[1]))
    tell(started=True)


if __name__ == "__main__":
    main()
