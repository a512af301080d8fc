# SPDX-License-Identifier: Apache-2.0
"""--data shape: the peak of a program whose data is not there is that of the program that has it, to the byte, and what stood in is listed."""

import json
import struct
import subprocess

import jsonschema
import pytest
from conftest import HERE, IN_SERVERS, NO_HUB, ROOT, python_of

FORKED = True  # ../fork_servers.py

FULL = "prog-servers"
SCHEMA = json.loads((ROOT / "doc/format/run.schema.json").read_text())
PEAKS = ("allocated_bytes", "reserved_bytes", "requested_bytes", "device_bytes")
PROGRAMS = HERE / "programs/data"
QUIET = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin:/bin"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """folder(how): a folder with images, tokens and photographs, stripped so; made once each."""
    whole = tmp_path_factory.mktemp("whole")
    home = {**QUIET, "HOME": str(tmp_path_factory.mktemp("home"))}
    subprocess.run([python_of(FULL), PROGRAMS / "make.py", whole], check=True, capture_output=True, env=home)
    made = {"whole": whole}

    def folder(how):
        if how not in made:
            made[how] = tmp_path_factory.mktemp("stripped") / how
            subprocess.run([python_of(FULL), PROGRAMS / "strip.py", whole, made[how], how], check=True, capture_output=True, env=home)
        return made[how]

    return folder


def write_mnist(root):
    """All files of MNIST, black, as its format has them (idx)."""
    folder = root / "MNIST/raw"
    folder.mkdir(parents=True)
    for part, rows in (("train", 60000), ("t10k", 10000)):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, rows, 28, 28) + bytes(rows * 28 * 28))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, rows) + bytes(range(10)) * (rows // 10))


def test_a_data_set_of_torchvision_is_as_large_as_the_real_one(tonnage, tmp_path):
    write_mnist(tmp_path / "there")
    whole, made = (run_of(tonnage, ["programs/data/sets.py", "MNIST", str(tmp_path / root)], *options)
                   for root, options in (("there", ()), ("absent", ["--data=shape"])))  # fmt: skip
    assert peaks(made) == peaks(whole) and made.stdout.split("\n")[0] == whole.stdout.split("\n")[0] == "60000 10000 (1, 28, 28) 1 10 10"
    assert {(row["kind"], row["count"]) for row in made.report["stand_ins"]} == {("data_set", 60000), ("data_set", 10000)}, made.explain()
    assert whole.report["stand_ins"] == [] and not (tmp_path / "absent").exists()


@pytest.mark.parametrize("name, told", [("CIFAR100", "50000 10000 (3, 32, 32) 11 100 100"), ("CIFAR10", "50000 10000 (3, 32, 32) 1 10 10"),
                                        ("FashionMNIST", "60000 10000 (1, 28, 28) 1 10 10")])  # fmt: skip
def test_data_sets_of_torchvision(tonnage, tmp_path, name, told):
    made = run_of(tonnage, ["programs/data/sets.py", name, str(tmp_path / "absent")], "--data=shape")
    assert peaks(made) and made.stdout.startswith(told), made.explain()


def test_a_folder_of_a_data_set_that_exists_is_read_as_it_is(tonnage, tmp_path):
    (tmp_path / "broken/cifar-10-batches-py").mkdir(parents=True)
    run = run_of(tonnage, ["programs/data/sets.py", "CIFAR10", str(tmp_path / "broken")], "--data=shape")
    assert run.verdict != "fits" and run.report["stand_ins"] == [], run.explain()


def peaks(run):
    assert run.verdict == "fits" and run.status == 0, run.explain()
    jsonschema.Draft202012Validator(SCHEMA).validate(run.report)
    assert not [row for row in run.report["sensors"] if row["state"] == "lost"], run.explain()
    return [run.report["peak"][name] for name in PEAKS]


def run_of(tonnage, words, *options):
    return tonnage(FULL, words, "--gpu=rtx3060", *options, env=NO_HUB, imports=IN_SERVERS)


@pytest.mark.parametrize("how, workers", [("cut", []), ("holes", ["2", "fork"]), ("empty", ["2", "spawn"])])
def test_images_that_are_not_there(tonnage, data, how, workers):
    whole = run_of(tonnage, ["programs/data/images.py", data("whole") / "images", *workers])
    made = run_of(tonnage, ["programs/data/images.py", data(how) / "images", *workers], "--data=shape")
    assert peaks(made) == peaks(whole)
    assert whole.report["stand_ins"] == [] and whole.report["bound"] is None
    rows = {row["path"].rpartition("/")[2]: row for row in made.report["stand_ins"]}
    assert set(rows) == {"train", "val"} and {row["kind"] for row in rows.values()} == {"images"}
    assert 0 < rows["train"]["count"] <= 48 and 0 < rows["val"]["count"] <= 12
    assert rows["train"]["assumed"] == (["sizes"] if how == "empty" else [])
    assert made.report["bound"] == ("lower" if how == "empty" else None)
    assert "not decoded (--data shape)" in " ".join(made.stderr.split())


def test_images_that_are_there_are_not_decoded(tonnage, data):
    whole, made = (run_of(tonnage, ["programs/data/images.py", data("whole") / "images"], *options) for options in ([], ["--data=shape"]))
    assert peaks(made) == peaks(whole)
    sizes = sum(path.stat().st_size for path in (data("whole") / "images/val").rglob("*.jpg"))
    [val] = [row for row in made.report["stand_ins"] if row["path"].endswith("val")]
    assert val["count"] == 12 and val["bytes"] == sizes and val["tensors"] is None


def test_images_without_bytes_end_a_program_that_wants_them(tonnage, data):
    run = run_of(tonnage, ["programs/data/images.py", data("empty") / "images"], "--data=real")
    assert run.verdict == "failed" and run.report["stand_ins"] == [] and "UnidentifiedImageError" in run.stderr


@pytest.mark.parametrize("kind, how, workers", [
    ("images", "empty", "0"), ("images", "cut", "2"), ("photographs", "holes", "0"), ("tokens", "values", "0"), ("tokens", "values", "2")])
def test_a_trainer_without_its_data(tonnage, data, kind, how, workers):
    """values: how long each row is is known, and a batch is as long as its longest."""
    whole = run_of(tonnage, ["programs/data/trainer.py", data("whole"), kind, workers])
    made = run_of(tonnage, ["programs/data/trainer.py", data(how), kind, workers], "--data=shape")
    assert peaks(made) == peaks(whole)
    kinds = {row["kind"] for row in made.report["stand_ins"]}
    assert kinds == ({"data_set"} if kind == "tokens" else {"images"} if kind == "images" else {"images", "data_set"})
    if how == "values":
        assert all(row["assumed"] == [] for row in made.report["stand_ins"]) and made.report["bound"] == whole.report["bound"]


@pytest.mark.parametrize("how", ["cut", "holes", "gone"])
def test_tokens_of_unknown_length(tonnage, data, how):
    made = run_of(tonnage, ["programs/data/trainer.py", data(how), "tokens", "0"], "--data=shape")
    peaks(made)
    rows = made.report["stand_ins"]
    assert len(rows) == 2 and all(row["assumed"] == ["rows", "lengths"] and row["kind"] == "data_set" for row in rows)
    assert all(row["bytes"] > 0 and row["tensors"] is None for row in rows)
    assert made.report["bound"] == "lower" and "assumed: how many rows they have" in " ".join(made.stderr.split())
    if how != "holes":
        assert {row["count"] for row in rows} == {10000} and all(row["bytes"] > 10_000_000 for row in rows)
    else:  # what the file tells of a thousand rows is said of its length
        assert all(1000 < row["count"] < 1600 for row in rows)


def test_what_libraries_give_for_files_of_all_kinds(tonnage):
    real, made = (run_of(tonnage, ["programs/data/look.py"], "--gpu=a100-80", f"--data={name}") for name in ("real", "shape"))
    said = [{key: values for key, *values in map(json.loads, filter(lambda line: line.startswith("["), run.stdout.splitlines()))} for run in (real, made)]
    before, after = said
    assert "taken" in after, made.explain()
    assert not [row for row in made.report["sensors"] if row["state"] == "lost"], made.explain()
    for name in ("a.jpg", "a.png", "alpha.png", "a.webp", "a.bmp"):
        assert after[name][:3] == before[name][:3] and after[name][3] == 0 < before[name][3], name
    for name in ("grey.png", "a.tif", "small.png", "open file", "in memory", "thumbnail", "pickled"):
        assert after[name] == before[name], name
    for name in ("a.jpg", "a.png", "a.webp", "grey.png", "alpha.png"):
        assert after[f"cut-{name}"] == before[name][:2], name
    assert after["empty.jpg"] == [[500, 375]] and 300 < after["hole.jpg"][0][0] < 700
    assert after["words.jpg"] == ["UnidentifiedImageError"] and after["gone.jpg"] == ["FileNotFoundError"]
    for name in ("a.jpg", "a.png", "a.webp", "cut-a.jpg"):
        assert after[f"tensor {name}"] == [[3, 120, 200], "torch.uint8", 0], name
    assert after["tensor empty.jpg"][0] == [3, 375, 500] and after["tensor grey.png"][0] == [1, 120, 200]
    assert after["tensor grey.png"][2] > 0 and after["tensor small.png"][2] > 0
    assert after["as RGB"] == [[3, 120, 200]] and after["JPEG in memory"] == [[3, 120, 200]]
    rows, *true, flag, score, roles, size = after["large"]
    assert rows == 2000 and true == [True] * 3 and flag is True and score == 1 and roles[:2] == ["user", "assistant"] and size[0] > 64
    assert after["taken"][0] < 100_000  # KiB, of 8 GB
    assert after["sent"] == [2000, True]


@pytest.mark.parametrize("command", ["run", "fit", "fix"])
def test_a_wrong_word_is_wrong_usage(command):
    from conftest import TONNAGE

    done = subprocess.run([TONNAGE, command, "--data", "none", "--", "true"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "tonnage: --data is real or shape, not \"none\"\n"
