# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of which only the headers are there, and whole ones that are not to be read: peaks, allocated and reserved,
are those of the run that reads whole files, to the byte."""

import importlib.util
import json
import subprocess

import pytest
from conftest import HERE, MAIN, ROOT, python_of
from fork_servers import LIBRARIES

FORKED = True  # ../fork_servers.py

PEAKS = ("allocated_bytes", "reserved_bytes", "requested_bytes", "device_bytes")
ROADS = ["map", "cpu", "checked", *(pytest.param(road, marks=pytest.mark.long) for road in ("auto", "cast", "load_file", "safe_open"))]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    done = subprocess.run([python_of(MAIN), HERE / "programs/checkpoint.py", folder], capture_output=True, text=True, check=True,
                          env={"CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin:/bin"})
    files = json.loads(done.stdout[done.stdout.index("["):])
    assert sum(name.endswith(".safetensors") for name in files) > 2
    return {kind: folder / kind for kind in ("whole", "headers", "holes")}


def peaks(run):
    assert run.verdict == "fits" and run.status == 0, run.explain()
    return [run.report["peak"][name] for name in PEAKS]


def load(tonnage, folder, how, *options):
    return tonnage(MAIN, ["programs/load_checkpoint.py", str(folder), how], "--gpu=a100-80", "--steps=all", *options)


@pytest.mark.parametrize("how", ROADS)
def test_headers_have_the_peak_of_whole_files(tonnage, checkpoints, how):
    whole, headers = (load(tonnage, checkpoints[kind], how) for kind in ("whole", "headers"))
    assert peaks(whole) == peaks(headers)
    assert whole.report["stand_ins"] == []
    rows = headers.report["stand_ins"]
    assert len(rows) > 2 and {row["kind"] for row in rows} == {"weights"}
    assert "are headers only" in " ".join(headers.stderr.split())


def test_checks_on_the_cpu_read_nothing(tonnage, checkpoints):
    run = load(tonnage, checkpoints["headers"], "checked")
    touched, whole = map(int, next(line for line in run.stdout.splitlines() if line.startswith("pages")).split()[1:])
    assert run.verdict == "fits" and touched < whole // 10, (touched, whole)


READ_AND_OUT = """
import sys, zlib, torch
print(zlib.crc32(open(sys.argv[1], "rb").read()))
torch.empty(1 << 40, device="cuda")
"""


def test_an_out_of_memory_is_no_failed_check(tonnage, checkpoints):
    """Values were read as zeros before it, and had nothing to do with it."""
    file = next(path for path in sorted(checkpoints["headers"].iterdir()) if path.suffix == ".safetensors")
    run = tonnage(MAIN, ["-c", READ_AND_OUT, str(file)], "--gpu=a100-80")
    assert run.verdict == "out_of_memory" and sum(row["read_bytes"] for row in run.report["stand_ins"]) > 0, run.explain()
    assert "weights_read" not in [row["id"] for row in run.report["findings"]], run.explain()


@pytest.mark.parametrize("how", ["pickle", *(pytest.param(road, marks=pytest.mark.long) for road in ("map", "mapped"))])
def test_whole_files_left_unread_have_it_too(tonnage, checkpoints, how):
    whole, shape = load(tonnage, checkpoints["whole"], how), load(tonnage, checkpoints["whole"], how, "--weights=shape")
    assert peaks(whole) == peaks(shape)
    assert {row["kind"] for row in shape.report["stand_ins"]} == {"weights_not_read"}


def test_files_with_holes_are_stood_in_for(tonnage, checkpoints):
    holes, real = load(tonnage, checkpoints["holes"], "cpu"), load(tonnage, checkpoints["holes"], "cpu", "--weights=real")
    assert peaks(holes) == peaks(real)
    assert len(holes.report["stand_ins"]) > 2 and real.report["stand_ins"] == []


@pytest.mark.parametrize("how", ["cpu", "card"])
def test_settings_that_bitsandbytes_keeps_in_tensors_are_not_needed(tonnage, tmp_path, how):
    """The files with holes have them, the headers have not."""
    spec = importlib.util.spec_from_file_location("weights_make", ROOT / "bench/weights/make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    config = {**make.B8, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
              "vocab_size": 9000, "quantization_config": make.NF4}  # fmt: skip
    tensors, values = make.language_model(config, "nf4")
    runs = []
    for kind, weights in (("headers", "auto"), ("holes", "real")):
        (tmp_path / kind).mkdir()
        make.put(tmp_path / kind / "config.json", config)
        make.tokenizer(tmp_path / kind)
        make.write(tmp_path / kind, tensors, kind, values=values)
        program = [str(ROOT / "bench/weights/program.py"), str(tmp_path / kind), how, "adapter"]
        runs.append(tonnage("prog-weights", program, "--gpu=a100-80", "--steps=all", f"--weights={weights}"))
    assert peaks(runs[0]) == peaks(runs[1])
    assert len(runs[0].report["stand_ins"]) == 1


PRETRAINED = """
import os, sys, torch, torchvision
os.environ.update(TORCH_HOME=sys.argv[1], https_proxy="http://127.0.0.1:9", http_proxy="http://127.0.0.1:9")
weights = sys.argv[2] if len(sys.argv) > 2 else None
if weights == "by hand":
    model = torchvision.models.resnet18()
    found = torch.hub.load_state_dict_from_url("https://localhost/resnet18.pth", progress=False)
    known = model.state_dict()
    known.update({key: value for key, value in found.get("state_dict", found).items() if key in known})
    model.load_state_dict(known)
    print(model.load_state_dict(found["state_dict"], strict=False))
elif weights == "unknown":
    torch.hub.load_state_dict_from_url("https://localhost/resnet18.pth")["epoch"]
else:
    model = torchvision.models.resnet18(weights=weights)
model.cuda()(torch.zeros(2, 3, 224, 224, device="cuda")).sum().backward()
"""


@pytest.mark.parametrize("how", ["DEFAULT", "by hand"])
def test_weights_that_cannot_be_downloaded_are_those_of_the_model(tonnage, tmp_path, how):
    """torchvision's, and those of a program that looks for keys and takes what it knows: the peak is that of the model without them."""
    plain, run = (tonnage(MAIN, ["-c", PRETRAINED, str(tmp_path), *more], "--gpu=a100-80") for more in ((), (how,)))
    assert peaks(run) == peaks(plain)
    rows = run.report["stand_ins"]
    assert [(row["kind"], row["tensors"], row["count"]) for row in rows] == [("weights_not_downloaded", 122, None)]
    assert rows[0]["path"].startswith("https://") and rows[0]["bytes"] > 40 << 20
    assert "could not be downloaded: the tensors that the model was built with stood in" in " ".join(run.stderr.split())
    assert plain.report["stand_ins"] == []


@pytest.mark.parametrize("how, option, error", [("DEFAULT", "--weights=real", "URLError"), ("unknown", "--weights=auto", "KeyError")])
def test_a_download_that_failed_is_told(tonnage, tmp_path, how, option, error):
    run = tonnage(MAIN, ["-c", PRETRAINED, str(tmp_path), how], "--gpu=a100-80", option, imports=LIBRARIES)  # the servers of load()
    assert run.verdict == "failed" and error in run.report["exception"]["text"], run.explain()
    assert "pretrained.py" not in run.stderr and "_tonnage" not in run.stderr, run.stderr
