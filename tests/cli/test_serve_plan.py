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
@pytest.mark.parametrize("words", [[], ["--gpu=h100", "--gpus=8"], ["--gpu=l4"], ["--gpu=h200", "--engine=sglang"], ["--gpu=b200", "--kv-cache-dtype=fp8"]])
def test_every_document_is_valid(tonnage, schema, model, name, words):
    document = plan(tonnage, schema, model(name), *words)
    assert document["kv_cache"]["block_bytes"] > 0


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
        ([folder, "--engine=tgi"], "--engine"),
        ([folder, "--verify"], "--gpu"),
        ([folder, "--nonsense"], "--nonsense"),
    ]
    for words, says in rows:
        done = tonnage("serve-plan", *words)
        assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1 and done.stdout == "", (words, done.stderr)


def test_verify_without_an_engine_says_so(tonnage, schema, model):
    done = tonnage("serve-plan", "--json", model("llama-3.1-8b"), "--gpu=h100", "--verify", "--python", sys.executable, timeout=120)
    document = json.loads(done.stdout)
    schema("serve-plan", document)
    assert done.returncode == 1 and document["verified"]["agrees"] is False and "vllm" in document["verified"]["problem"].lower()
