# SPDX-License-Identifier: Apache-2.0
"""tonnage serve-plan as a command: statuses, screen, JSON against its schema, published start-up logs, bad input. The counts themselves are
tested in tests/unit/test_serve_plan.c."""

import json
import pathlib
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "bench/serve_plan/configs"


@pytest.fixture
def model(tmp_path):
    """model(name, **fields): the folder of a config.json of bench/serve_plan, with fields changed."""

    def make(name, **fields):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        config = json.loads((CONFIGS / f"{name}.json").read_text())
        config.update(fields)
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return make


def plan(tonnage, schema, *words):
    done = tonnage("serve-plan", "--json", *words)
    document = json.loads(done.stdout)
    schema("serve-plan", document)
    assert done.stderr == ""
    assert done.returncode == {"starts": 0, "does_not_start": 10, "narrow": 12, "undecided": 12}[document["verdict"]]
    return document


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.glob("*.json")))
@pytest.mark.parametrize("words", [[], ["--gpu=h100", "--gpus=8"], ["--gpu=l4"], ["--gpu=h200", "--engine=sglang"], ["--gpu=b200", "--kv-cache-dtype=fp8"],
                                   ["--gpu=h100", "--engine=lmdeploy"]])  # fmt: skip
def test_every_document_is_valid(tonnage, schema, model, name, words):
    document = plan(tonnage, schema, model(name), *words)
    if "--engine=lmdeploy" in words and name.startswith("qwen3.6"):
        assert document["kv_cache"] is None and "LMDeploy" in document["reason"]  # states have no rule there
    elif "--gpus=8" in words and name == "gemma-3-1b":
        assert document["kv_cache"] is None and "cannot share" in document["reason"]  # four heads
    else:
        assert document["kv_cache"]["block_bytes"] > 0


def test_each_engine_takes_its_own_share(tonnage, schema, model):
    """What is asked for one engine is not held against another: 0.15 of the card is little for vLLM, LMDeploy's share is of what is free."""
    folder = model("llama-3.1-8b")
    words = ["--gpu=a100-80", "--max-model-len=16384", "--enforce-eager"]
    document = plan(tonnage, schema, folder, *words, "--engine=lmdeploy", "--gpu-memory-utilization=0.15")
    assert document["verdict"] == "starts" and document["commands"]["vllm"] and "utilization" not in document["commands"]["vllm"]
    assert "--cache-max-entry-count 0.15" in document["commands"]["lmdeploy"] and "--eager-mode" in document["commands"]["lmdeploy"]
    assert plan(tonnage, schema, folder, *words, "--gpu-memory-utilization=0.15")["verdict"] == "does_not_start"


def test_lmdeploy(tonnage, schema, model):
    """The figures of a real start (bench/serve_plan/README.md): 4134220595 bytes are 492 blocks of 64 tokens."""
    folder = model("llama-3.1-8b")
    document = plan(tonnage, schema, folder, "--gpu=l4", "--engine=lmdeploy", "--max-model-len=16384", "--kv-cache-memory-bytes=4134220595")
    cache = document["kv_cache"]
    assert (cache["blocks"], cache["block_tokens"], cache["block_bytes"], cache["longest"]) == (492, 64, 8388608, 491 * 64)
    wide = plan(tonnage, schema, model("deepseek-v2-lite"), "--gpu=h100", "--engine=lmdeploy")["kv_cache"]
    assert wide["block_tokens"] == 32 and wide["block_bytes"] == 32 * 27 * 576 * 2
    none = plan(tonnage, schema, model("llama-3.1-8b", architectures=["SmolLM3ForCausalLM"], model_type="smollm3"), "--gpu=h100", "--engine=lmdeploy")
    assert none["verdict"] == "does_not_start" and "LMDeploy" in none["reason"] and none["changes"] == []


def test_sglang_has_a_pool_for_windows_of_some_architectures_only(tonnage, schema, model):
    """Gemma 3's 26 layers keep all tokens (a real start: bench/serve_plan/README.md); the same layers named Gemma 4 have two pools."""
    words = ["--gpu=rtx4090", "--engine=sglang", f"--kv-cache-memory-bytes={15809590067}"]
    cache = plan(tonnage, schema, model("gemma-3-1b"), *words)["kv_cache"]
    assert (cache["tokens"], cache["token_bytes"], cache["window_bytes"]) == (593809, 26 * 1024, 0)
    layers = ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(26)]
    two = plan(tonnage, schema, model("gemma-3-1b", architectures=["Gemma4ForCausalLM"], model_type="gemma4_text", layer_types=layers), *words)["kv_cache"]
    assert two["token_bytes"] == 4 * 1024 and two["tokens"] == int(15809590067 / (4 * 1024 + 0.8 * 22 * 1024))


def test_sglang_without_graphs_keeps_room_for_activations(tonnage, schema, model):
    """memory_hook.py: 512 MiB, 1.5 MiB a token of a chunk of 4096, 128 MiB a card; with graphs 1536 and 128 MiB."""
    folder = model("llama-3.1-8b")
    words = ["--gpu=l4", "--engine=sglang", "--max-model-len=16384"]
    total = plan(tonnage, schema, folder, *words)["gpu"]["total_bytes"] >> 20
    eager, graphs = (plan(tonnage, schema, folder, *words, *more)["request"]["utilization"] for more in (["--enforce-eager"], []))
    assert eager == round((total - 512 - 6144 - 128) / total, 3) and graphs == round((total - 1536 - 128) / total, 3)


def test_starts(tonnage, schema, model):
    document = plan(tonnage, schema, model("llama-3.1-8b"), "--gpu=h100")
    assert document["verdict"] == "starts" and document["kv_cache"]["token_bytes"] == 32 * 8 * 128 * 2 * 2
    assert document["smallest"]["gpu"] and document["changes"] == []
    words = shlex.split(document["commands"]["vllm"])
    assert words[:2] == ["vllm", "serve"] and len(words) == 3  # nothing but what was asked for


def test_only_engines_that_start_are_offered(tonnage, schema, model):
    """At 30,000 tokens on this card SGLang is narrow where vLLM starts: its command line is not printed."""
    folder = model("llama-3.1-8b")
    document = plan(tonnage, schema, folder, "--gpu=l4", "--max-model-len=30000")
    assert document["commands"]["vllm"] and document["commands"]["sglang"] is None
    assert plan(tonnage, schema, folder, "--gpu=l4", "--max-model-len=30000", "--engine=sglang")["verdict"] == "narrow"
    screen = tonnage("serve-plan", "--gpu=l4", "--max-model-len=30000", folder).stdout
    assert "vllm serve" in screen and "sglang" not in screen


def test_every_change_that_is_named_starts(tonnage, schema, model):
    folder = model("llama-3.1-8b")
    document = plan(tonnage, schema, folder, "--gpu=l4")
    assert document["verdict"] == "does_not_start" and document["changes"]
    for change in document["changes"]:
        option = "--gpus" if change["option"] == "--tensor-parallel-size" else change["option"]
        changed = plan(tonnage, schema, folder, "--gpu=l4", option, *([change["value"]] if change["value"] else []))
        assert changed["verdict"] == "starts", change


def test_what_is_asked_for_is_not_advised(tonnage, schema, model):
    folder = model("llama-3.1-8b")
    document = plan(tonnage, schema, folder, "--gpu=l4", "--kv-cache-dtype=fp8", "--enforce-eager")
    assert not {"--kv-cache-dtype", "--enforce-eager"} & {change["option"] for change in document["changes"]}


def test_more_than_is_free(tonnage, schema, model):
    document = plan(tonnage, schema, model("llama-3.1-8b"), "--gpu=h100", "--gpu-memory-utilization=0.999")
    assert document["verdict"] == "does_not_start" and "free" in document["reason"]
    assert document["changes"][0]["option"] == "--gpu-memory-utilization" and float(document["changes"][0]["value"]) < 0.999


def test_published_logs(tonnage):
    done = subprocess.run([sys.executable, ROOT / "bench/serve_plan/score.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_screen_has_no_line_beyond_the_terminal(tonnage, model):
    tonnage.env["COLUMNS"] = "80"
    for words in (["--gpu=l4"], ["--gpu=h100", "--gpus=8"], []):
        lines = tonnage("serve-plan", model("qwen3.6-35b-a3b"), *words).stdout.splitlines()
        assert all(len(line) <= 80 or "/" in line for line in lines), lines


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"architectures": ["T5ForConditionalGeneration"], "model_type": "t5"}, "encoder-decoder"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
    ],
)
def test_models_that_are_refused(tonnage, model, fields, words):
    done = tonnage("serve-plan", model("llama-3.1-8b", **fields), "--gpu=h100")
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_an_unknown_architecture_is_not_guessed(tonnage, schema, model):
    folder = model("llama-3.1-8b", architectures=["SomethingNewForCausalLM"], model_type="something_new")
    document = plan(tonnage, schema, folder, "--gpu=h100")
    assert document["verdict"] == "undecided" and "headers" in document["reason"] and document["weights"] is None
    assert document["kv_cache"]["token_bytes"] == 131072  # what its fields decide
    without = plan(tonnage, schema, model("llama-3.1-8b", model_type="something_new", architectures=["New"], mamba_d_state=16))
    assert without["kv_cache"] is None and "mamba_d_state" in without["model"]["missing"]


def test_bad_input(tonnage, model, tmp_path):
    folder = model("llama-3.1-8b")
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    (tmp_path / "empty").mkdir()
    rows = [
        ([], "one folder"),
        ([tmp_path / "nowhere"], "nothing is downloaded"),
        ([tmp_path / "empty"], "no config.json"),
        ([tmp_path / "a.gguf"], "GGUF"),
        ([folder, "--gpu=rtx409"], "rtx4090"),
        ([folder, "--gpus=0"], "--gpus"),
        ([folder, "--gpu-memory-utilization=1.5"], "share"),
        ([folder, "--kv-cache-dtype=int3"], "--kv-cache-dtype"),
        ([folder, "--engine=tgi"], "lmdeploy"),
        ([folder, "--verify"], "--gpu"),
        ([folder, "--nonsense"], "--nonsense"),
    ]
    for words, says in rows:
        done = tonnage("serve-plan", *words)
        assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1 and done.stdout == "", (words, done.stderr)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "lmdeploy"])
def test_verify_without_an_engine_says_so(tonnage, schema, model, engine):
    words = ["--json", model("llama-3.1-8b"), "--gpu=h100", "--verify", f"--engine={engine}", "--python", sys.executable]
    done = tonnage("serve-plan", *words, timeout=120)
    document = json.loads(done.stdout)
    schema("serve-plan", document)
    assert done.returncode == 1 and document["verified"]["agrees"] is False and engine in document["verified"]["problem"].lower()


@pytest.mark.parametrize("engine, options, lines, agrees", [
    ("vllm", {"tensor_parallel_size": 1, "max_model_len": 4096, "kv_cache_dtype": "fp8", "enforce_eager": False},
     [{"blocks": 1024, "block_tokens": 16, "available": 1 << 30}, {"started": True}], True),
    ("sglang", {"tp_size": 1, "context_length": 4096, "kv_cache_dtype": "fp8_e4m3", "disable_cuda_graph": False},
     [{"blocks": 16384, "block_tokens": 1, "available": 1 << 30, "states": None, "tokens_alone": False}, {"started": True}], True),
    ("lmdeploy", {"tp": 1, "session_len": 4096, "quant_policy": 16, "eager_mode": False},
     [{"blocks": 257, "block_tokens": 64, "available": 1 << 30}, {"started": True}], False)])  # fmt: skip
def test_verify_speaks_with_an_engine(tonnage, schema, model, tmp_path, engine, options, lines, agrees):
    """A stand-in for the engine's Python: it is given the engine's own names for options, and its lines are compared."""
    stand_in = tmp_path / "python"
    says = "".join(f"print('tonnage-serve: ' + {json.dumps(json.dumps(line))})\n" for line in [{"version": "9.9"}, *lines])
    stand_in.write_text(f"#!{sys.executable}\nimport json, sys\nassert sys.argv[2] == {engine!r}\n"
                        f"assert json.loads(sys.argv[4]).items() >= {options!r}.items(), sys.argv[4]\n{says}")
    stand_in.chmod(0o755)
    words = ["--gpu=h100", f"--engine={engine}", "--max-model-len=4096", "--kv-cache-dtype=fp8", "--verify", "--python", stand_in]
    done = tonnage("serve-plan", "--json", model("llama-3.1-8b"), *words, timeout=120)
    document = json.loads(done.stdout)
    schema("serve-plan", document)
    assert document["verified"]["agrees"] is agrees and document["verified"]["started"], document["verified"]
    assert document["verified"]["engine"].endswith(" 9.9") and done.returncode == (0 if agrees else 1)
