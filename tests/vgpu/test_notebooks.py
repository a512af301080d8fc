# SPDX-License-Identifier: Apache-2.0
"""Notebooks, through a real Jupyter kernel: `tonnage run notebook.ipynb`, nbconvert, and the magic %%tonnage.

The notebooks lie in notebooks/ as text ("# %%" begins a cell, a tag may follow). The environment prog-notebooks has nbclient, ipykernel and
torch without NVIDIA's packages.
"""

import json
import os
import stat
import subprocess

import fork_servers
import pytest
from conftest import HERE, MIB, ROOT, TEMPORARY, TONNAGE, python_of, run_tonnage

ENVIRONMENT = "prog-notebooks"
CARD = ("--gpu", "rtx3060")


def cells_of(text):
    """Cells of a notebook written as text."""
    for part in text.split("# %%")[1:]:
        head, _, source = part.partition("\n")
        kind = "markdown" if "[markdown]" in head else "code"
        tags = [word for word in head.split() if not word.startswith("[")]
        cell = {"cell_type": kind, "metadata": {"tags": tags} if tags else {}, "source": source.rstrip("\n")}
        yield {**cell, "outputs": [], "execution_count": None} if kind == "code" else cell


def notebook_of(cells, path, kernel="python3"):
    metadata = {"kernelspec": {"name": kernel, "display_name": kernel, "language": "python"}}
    path.write_text(json.dumps({"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}))
    return path


@pytest.fixture
def run(request, tmp_path):
    """run(name or source, *options): a notebook of notebooks/, or the sources of its cells, under `tonnage run`. Runner and kernel are
    forked (../fork_servers.py), where the test is not marked fresh."""
    forked = request.node.get_closest_marker("fresh") is None

    def go(what, *options, env=None, python=True):
        text = (HERE / "notebooks" / f"{what}.py").read_text() if isinstance(what, str) else "".join(f"# %%\n{cell}\n" for cell in what)
        path = notebook_of(cells_of(text), tmp_path / "notebook.ipynb")
        own = python is True
        python = ("--python", python_of(ENVIRONMENT)) if own else python
        return run_tonnage([*CARD, *python, *options], [path], tmp_path, env, forked=forked and own)

    return go


def cells(run):
    return {region["name"]: region for region in run.report["regions"] if region["name"].startswith("cell ")}


def findings(run, *ids):
    return [row for row in run.report["findings"] if row["id"] in ids]


# ---- six notebooks ----


def test_classify(run):
    done = run("classify")
    assert (done.status, done.verdict) == (0, "fits"), done.explain()
    for words in ("shell works", "trained", "evaluated"):
        assert words in done.stdout, done.explain()
    found = cells(done)
    assert found["cell 3"]["left_bytes"] > 40 * MIB  # resnet18 in 32 bits
    assert found["cell 4"]["left_bytes"] > 120 * MIB  # gradients, and Adam's two numbers
    assert done.report["at_peak"]["at"]["file"] == "cell 4", done.explain()
    at = {(row["file"], row["line"]) for row in done.report["at_peak"]["holders"] if row["category"] == "optimizer_state"}
    assert at == {("cell 4", 7)}, done.explain()  # %%time is line 1


def test_language(run):
    done = run("language")
    assert (done.status, done.verdict) == (0, "fits"), done.explain()
    assert "generated" in done.stdout
    assert done.report["steps"]["seen"] >= 1
    assert cells(done)["cell 4"]["left_bytes"] > 0


def test_rerun_names_who_holds_the_old_model(run):
    done = run("rerun", "--cells", "1-5,3")
    parameters = 8 * (1024 * 1024 + 1024) * 4
    assert done.verdict == "fits", done.explain()
    assert "cell 3 (run 2)" in cells(done)
    assert cells(done)["cell 3"]["left_bytes"] == cells(done)["cell 3 (run 2)"]["left_bytes"] == parameters
    [row] = findings(done, "held_earlier_run")
    assert "optimizer keeps" in row["what"] and "cell 3 (run 2)" in row["what"] and "del optimizer" in row["do"]
    assert row["bytes"] == 4 * parameters + 16 * 0, done.explain()  # with gradients and Adam's state


def test_rerun_from_the_model_on_leaves_nothing(run):
    done = run("rerun", "--cells", "1-5,3-5")
    assert not findings(done, "held_earlier_run"), done.explain()


def test_a_failed_cell_keeps_what_its_functions_held(run):
    done = run("caught", "--memory", "600MiB")
    assert (done.status, done.verdict) == (10, "out_of_memory"), done.explain()
    [row] = findings(done, "held_traceback")
    assert row["bytes"] == 384 * MIB and "sys.last_traceback" in row["what"] and "cell 3" in row["what"]
    assert row == done.report["findings"][0], done.explain()  # without it the next cell would have fitted
    assert done.report["out_of_memory"]["at"]["file"] == "cell 4"


def test_what_is_shown_is_kept(run):
    done = run("outputs")
    [row] = findings(done, "held_output")
    assert row["bytes"] == 64 * MIB and "Out[2]" in row["what"] and "%xdel _2" in row["do"], done.explain()
    # a ; at the end keeps nothing; what %%capture caught is held by the user's own variable
    assert cells(done)["cell 3"]["left_bytes"] == 0
    assert cells(done)["cell 4"]["left_bytes"] in (32 * MIB, 96 * MIB)


def test_video_state_grows_by_cell(run):
    done = run("video")
    frames = 4 * 16 * 512 * 512 * 4
    for name in ("cell 3", "cell 4"):  # of 20 MiB that hold 3 already a frame of 16 gets 17: PyTorch does not split off 1 MiB
        assert frames <= cells(done)[name]["left_bytes"] < frames + 2 * MIB, done.explain()


# ---- bytes of holders are what is free without them ----


@pytest.mark.parametrize(
    "hold, name, free",
    [
        ("big() * 2", "Out[2]", "%xdel _2"),
        pytest.param("[big(), 'and a word']", "Out[2]", "%xdel _2", marks=pytest.mark.long),
        pytest.param("(lambda: big().requires_grad_() ** 2)()", "Out[2]", "%xdel _2", marks=pytest.mark.long),  # with what autograd saved
    ],
)
def test_remedies_of_outputs_are_true(run, hold, name, free):
    count = "import gc; gc.collect(); print('allocated', torch.cuda.memory_allocated())"
    define = "import torch\ndef big():\n    return torch.ones(8 << 20, device='cuda')"
    held = run([define, hold, count, "pass"])
    [row] = findings(held, "held_output")
    assert name in row["what"] and free in row["do"], held.explain()
    freed = run([define, hold, count, free, count])
    before, after = (int(line.split()[1]) for line in freed.stdout.splitlines() if line.startswith("allocated"))
    assert before - after == row["bytes"], freed.explain()
    assert not findings(freed, "held_output")


def test_remedy_of_a_traceback_is_true(run):
    define = "import torch\ndef fails():\n    t = torch.ones(8 << 20, device='cuda')\n    u = t * 2\n    raise ValueError(len(t))"
    count = "import gc; gc.collect(); print('allocated', torch.cuda.memory_allocated())"
    done = run([define, "fails()", count, "1/0", count], "--keep-going")
    [row] = findings(done, "held_traceback")
    before, after = (int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("allocated"))
    assert "1/0" in row["do"] and before - after == row["bytes"] == 64 * MIB, done.explain()


def test_remedy_of_a_variable_that_is_bound_anew_is_true(run):
    define = "import torch"
    plain = "table = torch.ones(100 << 20, device='cuda')"
    full = run([define, plain], "--cells", "1-2,2", "--memory", "700MiB")
    assert full.verdict == "out_of_memory", full.explain()
    row = full.report["findings"][0]
    assert row["id"] == "rebound" and row["bytes"] == 400 * MIB and "table still held" in row["what"], full.explain()
    assert "table = None at the top of cell 2" in row["do"]
    cured = run([define, f"table = None\n{plain}"], "--cells", "1-2,2", "--memory", "700MiB")
    assert cured.verdict == "fits" and not findings(cured, "rebound"), cured.explain()


def test_several_holders_are_named_together(run):
    done = run(
        [
            "import torch",
            "model = torch.nn.Linear(2048, 2048).cuda()",
            "optimizer = torch.optim.SGD(model.parameters(), 0.1)\npredict = lambda x, m=model: m(x)",
        ],
        "--cells",
        "1-3,2",
    )
    [row] = findings(done, "held_earlier_run")
    assert "optimizer and predict" in row["what"] and row["bytes"] == 2048 * 2049 * 4, done.explain()


# ---- as in Jupyter ----


def test_a_cell_that_fails_ends_the_run_or_not(run):
    sources = ["import torch\nx = torch.ones(1 << 20, device='cuda')", "1/0", "print('third')"]
    stops, goes_on = run(sources), run(sources, "--keep-going")
    assert (stops.status, stops.verdict) == (1, "failed") and "third" not in stops.stdout, stops.explain()
    assert "cell 3" in stops.report["steps"]["not_seen"]
    assert (goes_on.status, goes_on.verdict) == (0, "fits") and "third" in goes_on.stdout, goes_on.explain()
    [row] = findings(goes_on, "cell_failed")
    assert row["at"]["file"] == "cell 2" and row["at"]["line"] == 1


def test_an_out_of_memory_counts_although_the_notebook_goes_on(run):
    done = run(["import torch", "x = torch.ones(4 << 30, device='cuda')", "print('third')"], "--keep-going")
    assert (done.status, done.verdict) == (10, "out_of_memory") and "third" in done.stdout, done.explain()
    assert done.report["out_of_memory"]["at"] == {"file": "cell 2", "line": 1, "function": "<module>", "backward": False}


def test_training_that_has_settled_ends_no_notebook(run):
    train = "for _ in range(90):\n    model(torch.ones(4, 64, device='cuda')).sum().backward()\n    optimizer.step()\n    optimizer.zero_grad()"
    define = "import torch\nmodel = torch.nn.Linear(64, 64).cuda()\noptimizer = torch.optim.SGD(model.parameters(), 0.1)"
    done = run([define, train, "kept = torch.ones(8 << 20, device='cuda')\nprint('after')"])
    assert done.verdict == "fits" and "after" in done.stdout and done.report["steps"]["stopped"] == "settled", done.explain()
    assert cells(done)["cell 3"]["left_bytes"] == 32 * MIB
    seen = done.report["steps"]["seen"]
    assert 8 <= seen < 20 and f"cell 2, line 1: {90 - seen} of the 90 turns of the loop" in done.report["steps"]["not_seen"], done.explain()


def test_a_counting_loop_ends_only_where_steps_are_made(run):
    """A second training that needs more is seen with the optimizer's state beside its activations; other loops go through."""
    train = ("def train(width):\n    model = torch.nn.Linear(width, width).cuda()\n    optimizer = torch.optim.Adam(model.parameters())\n"
             "    for _ in range(100):\n        loss = model(torch.ones(4096, width, device='cuda')).sum()\n        loss.backward()\n"
             "        optimizer.step()\n        optimizer.zero_grad()")  # fmt: skip
    notebook = [f"import torch\n{train}", "train(64)", "total = 0\nfor i in range(1000):\n    total += i\ntrain(2048)\nprint('total', total)",
                "%%time\nprint(sum(i for i in range(10)), [i for i in range(3)])"]  # fmt: skip
    short, whole = run(notebook), run(notebook, "--steps", "all")
    assert "total 499500\n45 [0, 1, 2]" in short.stdout, short.explain()
    assert short.report["steps"]["seen"] < 60 and whole.report["steps"]["seen"] == 200, (short.explain(), whole.explain())
    assert short.report["peak"]["device_bytes"] == whole.report["peak"]["device_bytes"], (short.explain(), whole.explain())


def test_functions_of_other_cells_are_theirs(run):
    done = run(["import torch\n\ndef make():\n    return torch.ones(8 << 20, device='cuda')", "kept = make()"])
    [row] = [row for row in done.report["at_peak"]["holders"] if row["bytes"] == 32 * MIB]
    assert (row["file"], row["line"], row["function"]) == ("cell 1", 4, "make"), done.explain()
    assert cells(done)["cell 2"]["left_bytes"] == 32 * MIB


def test_without_nbclient_ipython_runs_the_cells(run, tmp_path):
    """IPython alone, in the runner's process, whose own frames are no one's; neither is told in one line."""
    hidden = "import sys, runpy; {}; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    wrapper = tmp_path / "python"

    def hide(*names, cells="rerun", options=("--cells", "1-5,3")):
        code = hidden.format("; ".join(f"sys.modules['{name}'] = None" for name in names))
        wrapper.write_text(f'#!/bin/sh\nexec {python_of(ENVIRONMENT)} -c "{code}" "$@"\n')
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
        return run(cells, *options, python=("--python", str(wrapper)))

    done = hide("nbclient")
    assert done.verdict == "fits", done.explain()
    [row] = findings(done, "held_earlier_run")
    assert "optimizer keeps" in row["what"], done.explain()
    done = hide("nbclient", cells=[f"import torch\n{TOO_MUCH}"], options=())
    assert (done.verdict, "\n  cell 1, line 2\n" in done.stderr) == ("out_of_memory", True), done.explain()
    done = hide("nbclient", "IPython")
    assert done.status == 2 and done.stderr.count("\n") == 1 and "pip install ipykernel" in done.stderr, done.explain()


@pytest.mark.parametrize(
    "options, words",
    [(("--cells", "1-9"), "the notebook has 2 code cells"), (("--cells", "2-1"), "--cells is a list"), (("--cells", "x"), "--cells is a list")],
)
def test_wrong_lists_of_cells(run, options, words):
    done = run(["1", "2"], *options)
    assert done.status == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.explain()


def test_files_that_are_no_notebooks(tmp_path):
    for text, words in (("{", "is not JSON"), ("[]", "it has no cells"), ('{"cells": []}', "no code cells")):
        path = tmp_path / "n.ipynb"
        path.write_text(text)
        done = run_tonnage([*CARD, "--python", python_of(ENVIRONMENT)], [path], tmp_path)
        assert done.status == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.explain()
    done = run_tonnage([*CARD, "--cells", "1"], ["true"], tmp_path)
    assert done.status == 2 and "go with a notebook" in done.stderr, done.explain()


def test_nbconvert_still_runs(tmp_path):
    path = notebook_of(cells_of((HERE / "notebooks/rerun.py").read_text()), tmp_path / "notebook.ipynb")
    words = [python_of(ENVIRONMENT), "-m", "nbconvert", "--execute", "--to", "notebook", "--output", "out.ipynb", path]
    done = run_tonnage(CARD, words, tmp_path)
    assert (done.status, done.verdict) == (0, "fits"), done.explain()
    assert cells(done)["cell 3"]["left_bytes"] == 8 * (1024 * 1024 + 1024) * 4, done.explain()


# ---- the magic ----

MAGIC = {"PYTHONPATH": str(ROOT / "python")}
USE = "x = torch.ones(8 << 20, device='cuda')\ny = x * 2\ndel y"


@pytest.mark.fresh
@pytest.mark.parametrize("options", [(), ("--no-detail",)])  # without our history the magic records PyTorch's, as on a real card
def test_the_magic_in_a_run(run, options):
    done = run(["%load_ext tonnage\nimport torch\ntorch.cuda.init()", f"%%tonnage --gpu rtx3060\n{USE}"], *options, env=MAGIC)
    assert done.verdict == "fits", done.explain()
    for words in ("peak         64.0 MiB allocated, 64.0 MiB reserved", "left behind  32.0 MiB\n", "fits NVIDIA GeForce RTX 3060"):
        assert words in done.stdout, done.explain()


def test_the_magic_without_a_card_says_what_to_do(tmp_path):
    sources = ["%load_ext tonnage", "%%tonnage\nx = 1\nx + 1", "%%tonnage --card a\n2", "%%tonnage\nnothing"]
    path = notebook_of(cells_of("".join(f"# %%\n{source}\n" for source in sources)), tmp_path / "notebook.ipynb")
    words = [python_of(ENVIRONMENT), str(ROOT / "python/tonnage/notebook/run_cells.py"), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **MAGIC}, timeout=120)
    assert "2\ntonnage: no GPU is in use here: `tonnage run --gpu rtx3060 NOTEBOOK.ipynb`" in done.stdout
    assert "takes --gpu NAME, and nothing else" in done.stderr and "NameError" in done.stderr and done.returncode == 1
    assert TONNAGE.exists()


# ---- fix ----

TOO_MUCH = "torch.empty(1 << 40, dtype=torch.uint8, device='cuda')"
UPDATES = ["import torch\nnet = torch.nn.Linear(8192, 8192).cuda()\nupdates = torch.optim.AdamW(net.parameters(), foreach=True)", TOO_MUCH,
           "for _ in range(2):\n    net(torch.ones(1, 8192, device='cuda')).sum().backward()\n    updates.step()"]  # fmt: skip


def search(tmp_path, command, cells, *options, forked=True):
    """The finished command, and its document. Processes of trials are forked from a server of the tests; then the command starts none of its own."""
    path = notebook_of(cells_of("".join(f"# %%\n{cell}\n" for cell in cells)), tmp_path / "notebook.ipynb")
    python = python_of(ENVIRONMENT)
    words = [str(TONNAGE), command, *options, "--python", python, "--json", str(tmp_path / "found.json"), str(path)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TMPDIR": TEMPORARY.name}
    done = None
    if forked and fork_servers.can_fork([python, path], {}):
        done = fork_servers.run_forked(TONNAGE, python, options, [*words[:2], "--fresh", *words[2:]], tmp_path, environment, ranks=True,
                                       imports=fork_servers.NOTEBOOKS, timeout=300)  # fmt: skip
    if done is None:
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    return done, json.loads((tmp_path / "found.json").read_text()) if (tmp_path / "found.json").exists() else None


def test_a_change_of_text_acts_in_cells_and_its_patch_is_of_the_notebook(tmp_path):
    """What `patch` makes of the notebook needs what the trial needed. Lines that are no Python stay."""
    notebook = ["\n%matplotlib --list\nimport torch\nnet = torch.nn.Linear(8192, 8192).cuda()\nupdates = torch.optim.AdamW(net.parameters())",
                "%%time\nfor _ in range(2):\n    net(torch.ones(1, 8192, device='cuda')).sum().backward()\n    updates.step()\n"
                "    updates.zero_grad()"]  # fmt: skip
    card = ("--gpu", "rtx3060", "--memory", "1300MiB")
    patch = tmp_path / "fix.diff"
    done, found = search(tmp_path, "fix", notebook, *card, "--patch", str(patch))
    first = found["changes"][0]
    assert done.returncode == 0 and (first["id"], first["fits"]) == ("fused", True), f"{done.stderr}\n{found}"
    before = json.loads((tmp_path / "notebook.ipynb").read_text())
    subprocess.run(["patch", "-p1", "-i", patch], cwd=tmp_path, check=True, capture_output=True)
    after = json.loads((tmp_path / "notebook.ipynb").read_text())
    before["cells"][0]["source"] = before["cells"][0]["source"].replace("parameters())", "parameters(), fused=True)")
    assert after == before
    again = run_tonnage([*card, "--python", python_of(ENVIRONMENT)], [tmp_path / "notebook.ipynb"], tmp_path, forked=True)
    assert again.verdict == "fits" and again.report["peak"]["device_bytes"] == first["peak_device_bytes"], again.explain()


@pytest.mark.parametrize("forked", [True, False], ids=["from_ours", "from_its_own_server"])
def test_fix_runs_the_cells_that_it_is_told(tmp_path, forked):
    """The second cell fits no card."""
    options = ["--gpu", "rtx3060", "--memory", "1300MiB", "--cells", "1,3", "--seconds", "1"]
    done, found = search(tmp_path, "fix", UPDATES, *options, forked=forked)
    assert done.returncode == 0 and any(row["fits"] for row in found["changes"]), f"{done.stderr}\n{found}"
    assert "--cells 1,3 --python" in " ".join(done.stdout.split() + done.stderr.split())
