# SPDX-License-Identifier: Apache-2.0
"""Moments of real snapshots against PyTorch's own books: random programs on the virtual GPU."""

import json
import os
import pathlib
import pickle
import subprocess

import pytest
from conftest import run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENTS = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))
WHEELS = [pytest.param("torch-2.6.0", marks=pytest.mark.long), "torch-2.11.0"]
EXPANDABLE = "expandable_segments:True"
ODD = "max_split_size_mb:30,roundup_power2_divisions:[1:8,16:2,>:1]"
OPERATIONS = 1200
CATEGORIES = ["parameters", "gradients", "optimizer_state", "inputs", "activations", "temporaries"]


@pytest.fixture(scope="session")
def moment_program():
    """Path of the program of moment.c, built where it is missing."""
    named = os.environ.get("TONNAGE_SNAPSHOT_MOMENT")
    if named:
        return pathlib.Path(named)
    if not (ROOT / "build/release/build.ninja").exists():
        subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", "snapshot_moment"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    return ROOT / "build/release/tests/snapshot_moment"


@pytest.fixture(scope="session")
def moment(moment_program):
    """What the program prints for a file of device 0, as Python objects."""

    def ask(path, *what):
        done = subprocess.run([moment_program, path, "0", *map(str, what)], capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return ask


def python_of(wheel):
    python = ENVIRONMENTS / wheel / "bin/python"
    if not python.exists():
        pytest.skip(f"no environment {wheel} (make envs)")
    return python


def run_churn(wheel, folder, configuration, *arguments):
    """Runs programs/churn.py; the folder then has churn.pickle and books.json."""
    done = run(python_of(wheel), ["churn.py", folder, *arguments], configuration)
    assert (folder / "books.json").exists(), f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads((folder / "books.json").read_text())


def compare(books, moments):
    assert len(moments) == len(books)
    for book, found in zip(books, moments):
        assert sorted(found["blocks"]) == sorted(book["blocks"])
        assert (found["allocated"], found["largest_free_block"]) == (book["allocated"], book["largest_free_block"])
        compare_sums(book, found)


def compare_sums(book, found):
    assert found["reserved"] == book["reserved"]
    assert {name: found["by_category"][name] for name in CATEGORIES} == book["by_category"]
    assert sum(found["by_category"].values()) == book["reserved"]
    assert found["requested"] == sum(requested for _, _, requested in book["blocks"])
    assert sum(holder["bytes"] for holder in found["holders"]) == found["requested"]
    assert found["named"] == found["requested"]


def compare_late(books, moments):
    """What was there before the trace and went in it has a size that may be unknown, by less than 1 MiB a block."""
    assert len(moments) == len(books)
    wrong = blocks = 0
    for book, found in zip(books, moments):
        compare_sums(book, found)
        sizes = {address: size for address, size, _ in found["blocks"]}
        missing = [size - sizes.pop(address) for address, size, _ in book["blocks"]]
        assert not sizes
        assert all(0 <= short <= 1 << 20 for short in missing)
        assert found["allocated"] == book["allocated"] - sum(missing)
        wrong += sum(short > 0 for short in missing)
        blocks += len(missing)
    assert wrong <= blocks / 20
    assert books[-1]["allocated"] == moments[-1]["allocated"]


def check_peak(moment, path, books):
    count = len(pickle.loads(path.read_bytes())["device_traces"][0])
    states = moment(path, "states", *range(0, count + 1, 7))
    peak = moment(path, "peak")
    assert peak["reserved"] >= max(state["reserved"] for state in states + books)
    same = [state["allocated"] for state in states if state["reserved"] == peak["reserved"]]
    assert same and peak["allocated"] >= max(same)
    assert moment(path, "peak", peak["reserved"]) == peak
    end = moment(path, "end")
    assert (end["reserved"], end["allocated"]) == (books[-1]["reserved"], books[-1]["allocated"])


CHURNS = [(1, "", False), (2, "", True), (3, EXPANDABLE, False), (4, ODD, False), (5, ODD, True)]


# Of the oldest wheel one is looked at as often.
@pytest.mark.parametrize("wheel, seed, configuration, late", [
    *(("torch-2.11.0", *churn) for churn in CHURNS), ("torch-2.6.0", *CHURNS[0]),
    *(pytest.param("torch-2.6.0", *churn, marks=pytest.mark.long) for churn in CHURNS[1:])])  # fmt: skip
def test_every_moment_is_what_pytorch_says(moment, tmp_path, wheel, seed, configuration, late):
    """Blocks with their sizes, sums and categories at moments that have long passed when the snapshot is taken."""
    books = run_churn(wheel, tmp_path, configuration, seed, OPERATIONS, *["late"] * late)
    assert len(books) > 5 and max(len(book["blocks"]) for book in books) > 10
    path = tmp_path / "churn.pickle"
    assert pickle.loads(path.read_bytes())["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] == configuration
    moments = moment(path, "states", *[book["events"] for book in books])
    (compare_late if late else compare)(books, moments)
    check_peak(moment, path, books)


def test_a_peak_that_was_not(moment_program, tmp_path):
    path = tmp_path / "none.pickle"
    path.write_bytes(pickle.dumps([]))
    done = subprocess.run([moment_program, path, "0", "peak", "1"], capture_output=True, text=True)
    assert done.returncode == 1 and "not found" in done.stderr


# ---- a training program whose metadata the guest hook writes ----


@pytest.fixture(scope="session")
def trained(once):
    """The books and the snapshot's path of programs/train.py, by wheel and by what came last."""

    def train(wheel, last):
        def make(folder):
            done = run(python_of(wheel), ["train.py", folder, last], "", "--snapshot", folder / "run.pickle")
            assert (folder / "books.json").exists(), f"status {done.returncode}\n{done.stdout}\n{done.stderr}"

        folder = once(f"trained-{wheel}-{last}", make)
        return json.loads((folder / "books.json").read_text()), folder / "run.pickle"

    return train


@pytest.mark.parametrize("wheel", WHEELS)
def test_peak_of_training(moment, trained, wheel):
    """What is held is what the program itself holds; nearly every byte has a line, backward included."""
    books, path = trained(wheel, "backward")
    peak = moment(path, "peak")
    assert peak["inferred"] is False
    assert peak["reserved"] == books["reserved_peak"]
    assert peak["by_category"]["parameters"] == books["parameters"]
    assert peak["by_category"]["optimizer_state"] == books["optimizer_state"]
    assert peak["by_category"]["inputs"] == books["inputs"]
    assert peak["phase"] == "backward" and peak["at"][3] is True
    assert peak["named"] >= 0.98 * peak["requested"]


@pytest.mark.parametrize("wheel", WHEELS)
def test_layers_of_training(moment, trained, wheel):
    """Each layer keeps two tensors of one line, so that there are twice as many equal blocks as layers."""
    books, path = trained(wheel, "forward")
    holders = moment(path, "end")["holders"]
    largest = next(holder for holder in holders if holder["category"] == "activations")
    assert largest["at"] == [str(HERE / "programs/train.py"), books["line_of_layer"], largest["at"][2], False]
    assert largest["bytes"] == books["layers"] * books["bytes_of_layer"]
    assert (largest["blocks"], largest["alike"], largest["layers"]) == (2 * books["layers"], books["layers"], True)


@pytest.mark.parametrize("wheel", WHEELS)
def test_no_layers_where_some_have_gone(moment, trained, wheel):
    """At the peak, in the backward of the last layer, one of its tensors has been freed: 13 equal ones are no 13 layers."""
    books, path = trained(wheel, "backward")
    holders = moment(path, "peak")["holders"]
    largest = next(holder for holder in holders if holder["category"] == "activations")
    assert largest["at"][1] == books["line_of_layer"]
    assert largest["blocks"] == 2 * books["layers"] - 1
    assert largest["alike"] == 1


@pytest.mark.parametrize("wheel", WHEELS)
def test_backward_has_the_lines_of_forward(moment, trained, wheel):
    """Gradients of the weights were made in the backward of the lines that used these weights."""
    books, path = trained(wheel, "backward")
    gradients = {holder["at"][1]: holder["bytes"] for holder in moment(path, "end")["holders"]
                 if holder["category"] == "gradients" and holder["at"] and holder["at"][3]}
    assert gradients == {int(line): size for line, size in books["gradients"].items()}
