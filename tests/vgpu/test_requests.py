# SPDX-License-Identifier: Apache-2.0
"""`tonnage run --request` with real servers: FastAPI, Gradio, Flask and vLLM. The servers lie in servers/; ports are free ones."""

import json

import pytest
from conftest import HERE, IN_SERVERS, MIB, NO_HUB, free_port, python_of, run_tonnage
from searches import search

ENVIRONMENT = "prog-servers"
SERVERS = HERE / "servers"


@pytest.fixture
def asked(request, tmp_path):
    """asked(words of the server, text of requests, *options): PORT stands for a free one in both. The server is forked, where the test is
    not marked fresh."""
    forked = request.node.get_closest_marker("fresh") is None

    def go(words, text, *options, environment=ENVIRONMENT, env=NO_HUB, timeout=300):
        port = str(free_port())
        path = tmp_path / "asked.http"
        path.write_text(text.replace("PORT", port))
        program = [python_of(environment), *(word.replace("PORT", port) for word in words)]
        run = run_tonnage(["--request", str(path), *options], program, tmp_path, env, timeout, forked, IN_SERVERS)
        assert "requests" in run.report, run.explain()
        return run

    return go


def rows(run):
    return run.report["requests"]["requests"]


def line_of(server, text):
    return next(number for number, line in enumerate((SERVERS / server).read_text().splitlines(), 1) if text in line)


def post(path, **body):
    return f"### {path}\nPOST http://127.0.0.1:PORT{path}\nContent-Type: application/json\n\n{json.dumps(body)}\n"


# ---- FastAPI ----

UVICORN = ["-m", "uvicorn", "--app-dir", str(SERVERS), "--port", "PORT"]


def test_a_leak_of_8_mib_a_request(asked):
    run = asked([*UVICORN, "leak_api:app"], post("/embed", length=512), "--gpu", "rtx3060")
    assert (run.status, run.verdict) == (10, "grows"), run.explain()
    growth = run.report["growth"]
    assert growth["unit"] == "request" and growth["bytes_per_unit"] == 8 * MIB, run.explain()
    assert growth["at"]["line"] == line_of("leak_api.py", "return self.body"), run.explain()
    found = run.report["findings"][0]
    assert found["id"] == "growth" and "kept in history" in found["what"]
    assert found["at"]["line"] == line_of("leak_api.py", "history.append"), run.explain()
    assert 16 < run.report["requests"]["sent"] < 40 and run.report["steps"]["stopped"] == "requests"
    assert "kept in history, added at" in run.stderr and "full at request" in run.stderr and "tonnage fix" not in run.stderr  # no change cures a leak
    # the card less context, peak before growth, divided by 8 MiB
    left = 12616990720 - run.device_bytes
    assert abs(growth["full_at"] - (run.report["requests"]["sent"] + left / (8 * MIB))) < 24, run.explain()


def test_an_out_of_memory_that_ends_the_server(asked):
    text = "".join(f"GET http://127.0.0.1:PORT/work/{mib}\n###\n" for mib in (100, 200, 2000))
    run = asked([str(SERVERS / "dies_fastapi.py"), "PORT"], text, "--gpu", "rtx3060", "--memory", "1GiB", "--repeat", "2")
    assert run.verdict == "out_of_memory", run.explain()
    assert run.report["out_of_memory"]["step"] == 3 and run.report["requests"]["sent"] == 3, run.explain()
    assert run.report["out_of_memory"]["at"]["line"] == line_of("dies_fastapi.py", "torch.zeros")
    assert rows(run)[2]["words"] == "the connection was dropped" and "request 3" in run.stderr


# ---- Flask ----


@pytest.mark.fresh
def test_the_largest_of_several_sizes(asked):
    text = post("/features", rows=1024) + post("/features", rows=65536) + post("/features", rows=8192)
    run = asked([str(SERVERS / "sizes_flask.py"), "PORT"], text, "--gpu", "rtx3060")
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert [row["answered"] == row["sent"] for row in rows(run)] == [True] * 3 and run.report["requests"]["rounds"] >= 3
    # the largest: 65,536 rows of 1,024, and of 4,096 twice, in 32 bits
    assert rows(run)[1]["peak_taken_bytes"] == run.device_bytes > 65536 * (1024 + 4096 + 4096) * 4, run.explain()
    assert rows(run)[0]["peak_taken_bytes"] < rows(run)[1]["peak_taken_bytes"] / 4
    assert rows(run)[2]["peak_taken_bytes"] is None  # it lives on what the one before left in PyTorch's cache
    assert "request 2 of the list takes most" in " ".join(run.stderr.split())


def test_an_out_of_memory_that_is_answered_500(asked):
    text = post("/features", rows=1024) + post("/features", rows=65536)
    run = asked([str(SERVERS / "sizes_flask.py"), "PORT"], text, "--gpu", "rtx3060", "--memory", "2GiB")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert run.report["out_of_memory"]["step"] == 2 and run.report["requests"]["sent"] == 2  # nothing is sent after it
    assert run.report["out_of_memory"]["at"]["line"] == line_of("sizes_flask.py", "return model("), run.explain()
    assert (rows(run)[1]["status"], rows(run)[1]["out_of_memory"]) == (500, True)
    assert "of request 2" in run.stderr


def test_an_out_of_memory_that_is_answered_200(asked):
    """Many servers answer so: the error's words are the answer."""
    run = asked([str(SERVERS / "sizes_flask.py"), "PORT", "say"], post("/features", rows=65536), "--gpu", "rtx3060", "--memory", "2GiB")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert (rows(run)[0]["status"], rows(run)[0]["out_of_memory"]) == (200, True)


def test_one_that_the_server_gets_over_is_handled(asked):
    text = post("/features", rows=1024) + post("/features", rows=65536)
    run = asked([str(SERVERS / "sizes_flask.py"), "PORT", "catch"], text, "--gpu", "rtx3060", "--memory", "2GiB", "--repeat", "2")
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert [row["answered"] for row in rows(run)] == [2, 2]
    assert sum(row["count"] for row in run.report["handled_out_of_memory"]) == 2, run.explain()


def test_fix_of_a_request_that_is_too_large(tmp_path):
    """Each trial starts the server and sends the requests, one server after the other since they share a port. What changes there are is
    known of a server that does not come to an end of its own, too."""
    port, path = str(free_port()), tmp_path / "asked.http"
    path.write_text(post("/features", rows=65536).replace("PORT", port))
    options = ["--gpu", "rtx3060", "--memory", "2GiB", "--request", str(path), "--repeat", "2"]
    program = [python_of(ENVIRONMENT), str(SERVERS / "sizes_flask.py"), port, "hard"]
    done, document = search("fix", options, program, tmp_path, NO_HUB, imports=IN_SERVERS)
    assert done.returncode == 0, done.stderr
    found = {row["id"]: row for row in document["changes"]}
    assert found["half_weights=bf16"]["outcome"] == "fits" and document["unchanged"]["command"] is None
    assert not [row for row in document["changes"] if row["outcome"] == "broke"]
    assert f"--request {path} --repeat 2 -- " in " ".join(done.stderr.split())


def test_a_request_that_the_server_refuses(asked):
    run = asked([str(SERVERS / "sizes_flask.py"), "PORT"], post("/nowhere", rows=1), "--repeat", "2")
    assert run.verdict == "undecided" and "answered 404" in run.report["findings"][0]["what"], run.explain()


# ---- Gradio ----


def test_a_chat_whose_context_grows(asked):
    text = post("/gradio_api/call/answer", data=["tell me more about it please and then some"], session_hash="one")
    run = asked([str(SERVERS / "chat_gradio.py"), "PORT"], text, "--gpu", "rtx3060", "--repeat", "14")
    assert (run.status, run.verdict) == (0, "fits"), run.explain()
    assert rows(run)[0]["answered"] == 14
    [found] = [row for row in run.report["findings"] if row["id"] == "context_grows"]
    assert found["bytes"] == run.report["requests"]["peak_rises_bytes"] > MIB, run.explain()
    assert run.report["requests"]["rising_rounds"] >= 8 and "the card is full in round" in found["what"]
    assert run.report["growth"] is None


# ---- vLLM ----


@pytest.mark.long
def test_vllm_with_rising_lengths(asked, tmp_path):
    """Its memory is what its own rule takes as it starts: no request changes it."""
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1408,
              "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 32000,
              "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}  # fmt: skip
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(config))
    text = "".join(post("/v1/completions", model="m", prompt=[5 + i % 100 for i in range(length)],
                        max_tokens=8, ignore_eos=True, detokenize=False) for length in (8, 512, 3000))  # fmt: skip
    run = asked(["-m", "vllm.entrypoints.cli.main", "serve", str(model), "--load-format", "dummy", "--skip-tokenizer-init", "--port",
                 "PORT", "--enforce-eager", "--served-model-name", "m", "--max-model-len", "4096"], text, "--gpu", "rtx4090",
                "--seconds", "300", "--repeat", "3", environment="prog-vllm", env={"VLLM_USE_FLASHINFER_SAMPLER": "0"}, timeout=560)  # fmt: skip
    assert run.verdict == "fits", run.explain()
    assert [row["answered"] for row in rows(run)] == [3, 3, 3], run.explain()
    assert run.report["requests"]["peak_rises_bytes"] is None and run.report["growth"] is None
