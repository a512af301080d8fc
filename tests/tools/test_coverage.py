# SPDX-License-Identifier: Apache-2.0
"""tools/coverage.py finds what the tables lack and says what it could not check. On real wheels tools/run_tests.py runs it (`coverage`)."""
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def coverage(*arguments):
    return subprocess.run([sys.executable, str(ROOT / "tools/coverage.py"), *map(str, arguments)],
                          capture_output=True, text=True, check=False)


def make_environment(folder, source, name="libthing.so"):
    """An environment with one package `thing`, whose library is compiled from C source."""
    package = folder / "lib/python3.11/site-packages/thing"
    package.mkdir(parents=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", str(package / name), "-"], input=source, text=True,
                   check=True)
    return folder


def test_known_names_pass(tmp_path):
    environment = make_environment(tmp_path, "int cudaMalloc(void **, unsigned long);\n"
                                             "int f(void) { void *p; return cudaMalloc(&p, 1); }\n"
                                             "const char *g(void) { return \"nvmlInit_v2\"; }\n")
    result = coverage("--json", "-", environment)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = {row["library"]: row for row in json.loads(result.stdout)["environments"][0]["wheels"][0]["libraries"]}
    assert (rows["cudart"]["imported"], rows["cudart"]["unknown"]) == (1, [])
    assert (rows["nvml"]["looked_up"], rows["nvml"]["unknown"]) == (1, [])


@pytest.mark.parametrize("source, name, folder", [
    ("int cudaInvented(void); int f(void) { return cudaInvented(); }", "cudaInvented", "cudart"),
    ("const char *f(void) { return \"nvmlDeviceGetInvented_v9\"; }", "nvmlDeviceGetInvented_v9", "nvml"),
    ("const char *f(void) { return \"cuMemInventedAsync\"; }", "cuMemInventedAsync", "driver"),
    ("int ncclInvented(void); int f(void) { return ncclInvented(); }", "ncclInvented", "nccl"),
])
def test_an_invented_name_fails_and_is_listed(tmp_path, source, name, folder):
    result = coverage(make_environment(tmp_path, source + "\n"))
    assert result.returncode == 1
    assert "unknown: %s (%s, asked for by thing)" % (name, folder) in result.stdout


def test_own_functions_and_other_words_are_not_asked_for(tmp_path):
    environment = make_environment(tmp_path, "int cudaOfMyOwn(void) { return 1; }\n"
                                             "const char *f(void) { return \"cudaErrorInventedThing\"; }\n"
                                             "const char *g(void) { return \"cudaMallocInvented failed\"; }\n")
    result = coverage(environment)
    assert result.returncode == 0, result.stdout


def test_nvidia_s_own_libraries_are_not_looked_into(tmp_path):
    environment = make_environment(tmp_path, "const char *f(void) { return \"cuInventedThing\"; }\n", "libcudart.so.12")
    assert coverage(environment).returncode == 0


def test_a_missing_environment_is_said(tmp_path):
    result = coverage(tmp_path / "nowhere")
    assert result.returncode == 77
    assert "nowhere: MISSING, not checked" in result.stdout
    present = make_environment(tmp_path / "here", "int x;\n")
    result = coverage(present, tmp_path / "nowhere")
    assert result.returncode == 0 and "MISSING" in result.stdout


def test_no_environment_is_wrong_usage():
    assert coverage().returncode == 2


def test_a_built_library_must_export_its_table(tmp_path):
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", str(tmp_path / "libcurand.so.10"), "-"],
                   input="int curandCreateGenerator(void) { return 0; }\n", text=True, check=True)
    result = coverage("--built", tmp_path)
    assert result.returncode == 1
    line = next(line for line in result.stdout.splitlines() if line.startswith("libcurand.so.10"))
    assert "curandGenerateUniform" in line and "curandCreateGenerator," not in line
    assert "libcufft.so.11: not built" in result.stdout
