# SPDX-License-Identifier: Apache-2.0
"""Starts an inference engine as `tonnage serve-plan --verify` planned it, with made-up weights, and says how it laid out its cache.

    serve_probe.py ENGINE FOLDER OPTIONS    (a JSON object: the engine's own options)

Prints lines "tonnage-serve: {...}": the release, then the cache as soon as the engine has decided on it, then that it has started. A part that this
release has elsewhere ends with an exception, which `--verify` reports. Each engine is one function below and a row of src/serve/engine_words.c.
"""

import json
import os
import shutil
import sys

# What would compile with nvcc, and changes nothing of the cache, is left out; vLLM's core runs in this process, so that its decision can be read.
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "SGLANG_ENABLE_JIT_DEEPGEMM": "0",
}


def tell(**what):
    print("tonnage-serve: " + json.dumps(what), flush=True)


def start_vllm(folder, options):
    import vllm
    from vllm.v1.engine import core

    decide = core.get_kv_cache_configs

    def decide_and_tell(config, specs, available):
        memory = min(available)
        layouts = decide(config, specs, available)
        tell(blocks=layouts[0].num_blocks, block_tokens=config.cache_config.block_size, available=memory)
        return layouts

    core.get_kv_cache_configs = decide_and_tell
    tell(version=vllm.__version__)
    vllm.LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, **options)


def sglang_scheduler(*arguments, **named):
    """SGLang's process of one rank, which lays out the cache: again after CUDA graphs are captured, where it has any."""
    from sglang.srt.managers.scheduler import run_scheduler_process
    from sglang.srt.mem_cache.kv_cache_configurator import KVCacheConfigurator as Configurator
    from sglang.srt.runtime_context import get_schedule

    decide, divide = Configurator.config_from_budget, Configurator._handle_max_mamba_cache
    before_states = []

    def divide_and_note(self, memory):
        before_states.append(int(memory * (1 << 30)))
        return divide(self, memory)

    def decide_and_tell(self, budget, **more):
        layout = decide(self, budget, **more)
        whole = before_states.pop() if before_states else budget
        states = get_schedule().max_mamba_cache_size
        tell(blocks=layout.max_total_num_tokens, block_tokens=get_schedule().page_size, available=whole,
             states=states, tokens_alone=states is not None and whole == budget)  # fmt: skip
        return layout

    Configurator.config_from_budget, Configurator._handle_max_mamba_cache = decide_and_tell, divide_and_note
    return run_scheduler_process(*arguments, **named)


def name_toolkit():
    """DeepGEMM, which SGLang imports with its latent attention, wants a folder of CUDA's; the wheels bring one."""
    if "CUDA_HOME" in os.environ or "CUDA_PATH" in os.environ or shutil.which("nvcc"):
        return
    for folder in sys.path:
        if os.path.isdir(os.path.join(folder, "nvidia/cu13/bin")):
            os.environ["CUDA_HOME"] = os.path.join(folder, "nvidia/cu13")
            return


def start_sglang(folder, options):
    name_toolkit()
    import sglang
    from sglang.srt.entrypoints.engine import Engine

    class Told(Engine):
        run_scheduler_process_func = staticmethod(sglang_scheduler)

    tell(version=sglang.__version__)
    return Told(model_path=folder, load_format="dummy", skip_tokenizer_init=True, **options)


def start_lmdeploy(folder, options):
    """Its PyTorch engine; it has neither made-up weights nor a start without a tokenizer, so both are left out here."""
    import types

    import lmdeploy
    from lmdeploy.pytorch.engine import Engine
    from lmdeploy.pytorch.engine.executor import base
    from lmdeploy.pytorch.engine.model_agent import agent

    decide = base.ExecutorBase._update_num_gpu_blocks

    def decide_and_tell(self, free, sizes, more):
        decide(self, free, sizes, more)
        config = self.cache_config
        tell(blocks=config.num_gpu_blocks, block_tokens=config.block_size, available=int(min(free) * config.cache_max_entry_count))

    base.ExecutorBase._update_num_gpu_blocks = decide_and_tell
    agent.load_model_weights = lambda *arguments, **named: None
    agent.Tokenizer = lambda *arguments, **named: types.SimpleNamespace(model=types.SimpleNamespace(model=None))
    agent.GuidedDecodingManager = lambda *arguments, **named: None
    tell(version=lmdeploy.__version__)
    return Engine(folder, lmdeploy.PytorchEngineConfig(**options))


ENGINES = {"vllm": start_vllm, "sglang": start_sglang, "lmdeploy": start_lmdeploy}


def main():
    name, folder, options = sys.argv[1:]
    for setting, value in SETTINGS.items():
        os.environ.setdefault(setting, value)
    engine = ENGINES[name](folder, json.loads(options))
    tell(started=True)
    if hasattr(engine, "shutdown"):
        engine.shutdown()
    sys.stdout.flush()
    os._exit(0)  # an engine's threads would wait for requests


if __name__ == "__main__":
    main()
