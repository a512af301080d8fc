# SPDX-License-Identifier: Apache-2.0
"""The validation kit with a virtual card that stands in for the real one: the jobs run on the real wheels, the counts come
out, and a call goes on with what an earlier one left."""

import functools
import json
import os
import subprocess

import fork_servers
import jsonschema
import pytest
from conftest import ENDS, MAIN, ROOT, TEMPORARY, TONNAGE, python_of

SCHEMA = json.loads((ROOT / "doc/format/validate.schema.json").read_text())
# All of them are run by `make long`.
USUAL = ["residual fp32", pytest.param("convolutions float16 last", marks=pytest.mark.long), "CUDA graph", "out of memory, fragmented"]


def validate_in(folder, environment, *options):
    """The finished command, and its results. Jobs on the main wheel may be forked (../fork_servers.py)."""
    python = python_of(environment)
    command = [str(TONNAGE), "validate", "--json", "results.json", *options, python]
    variables = {**os.environ, "TMPDIR": TEMPORARY.name}
    done = None
    if environment == MAIN and not fork_servers.is_fresh():
        done = fork_servers.run_forked(TONNAGE, python, ["--no-detail"], command, folder, variables, timeout=900)
    if done is None:
        done = subprocess.run(command, cwd=folder, env=variables, timeout=900, capture_output=True, text=True)
    results = folder / "results.json"
    done.results = json.loads(results.read_text()) if results.exists() else None
    if done.returncode in (0, 1):
        jsonschema.Draft202012Validator(SCHEMA).validate(done.results)
    return done


@pytest.fixture
def validate(tmp_path):
    return functools.partial(validate_in, tmp_path)


@pytest.fixture(scope="module")
def first_call(tmp_path_factory):
    """A call with one job, and its results, which others go on with in folders of their own."""
    folder = tmp_path_factory.mktemp("first")
    done = validate_in(folder, "torch-2.11.0", "--gpu=rtx3060", "--jobs=out of memory, by")
    return done, (folder / "results.json").read_bytes()


def check(done, jobs):
    assert done.returncode == 0, done.stderr
    assert [entry["job"] for entry in done.results["jobs"]] == jobs, done.stderr
    for entry in done.results["jobs"]:
        wanted = "out_of_memory" if entry["job"].startswith("out of memory") and "caught" not in entry["job"] else "done"
        assert entry["agrees"] and entry["end"]["measured"] == wanted, entry
        assert entry["segments"]["measured"] and entry["process_bytes"]["measured"] > 0, entry
    assert done.results["stand_in"] and "stood in for the real one" in done.stderr


def names_of(environment):
    done = subprocess.run([TONNAGE, "validate", "--list", python_of(environment)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("job", USUAL)
def test_usual_jobs_agree_with_themselves(validate, job):
    done = validate("torch-2.11.0", "--gpu=h200", f"--jobs={job}")
    check(done, [name for name in names_of("torch-2.11.0") if job in name])


@pytest.mark.long
@pytest.mark.parametrize("environment", [MAIN, *ENDS])
def test_all_jobs_agree_with_themselves(validate, environment):
    check(validate(environment, "--gpu=h200", "--minutes=0"), names_of(environment))


def test_a_call_goes_on_with_an_earlier_one(validate, first_call, tmp_path):
    first, results = first_call
    (tmp_path / "results.json").write_bytes(results)
    second = validate("torch-2.11.0", "--gpu=rtx3060", "--jobs=CUDA graph")
    check(second, ["out of memory, by fraction", "CUDA graph"])
    assert first.results["jobs"][0] == second.results["jobs"][0] and second.results["summary"]["agree"] == 2
    assert "by fraction" not in second.stderr, "what is known is not run again"


@pytest.mark.parametrize("program", ["/bin/true", "/bin/false"])
def test_what_is_no_python_is_said_to_be_none(program):
    done = subprocess.run([TONNAGE, "validate", "--gpu=h200", "--jobs=LSTM", program], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "is it a Python" in done.stderr


def test_results_of_others_are_left_alone(validate, first_call, tmp_path):
    _, kept = first_call
    (tmp_path / "results.json").write_bytes(kept)
    done = validate("torch-2.11.0", "--gpu=h200", "--jobs=out of memory, by")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "another card" in done.stderr
    done = validate("torch-2.6.0", "--gpu=rtx3060", "--jobs=out of memory, one")
    assert done.returncode == 2 and "another PyTorch" in done.stderr
    assert (tmp_path / "results.json").read_bytes() == kept
    (tmp_path / "results.json").write_text("[1]")
    done = validate("torch-2.11.0", "--gpu=h200", "--jobs=out of memory, by")
    assert done.returncode == 2 and "no results of tonnage validate" in done.stderr
    assert (tmp_path / "results.json").read_text() == "[1]"
