# SPDX-License-Identifier: Apache-2.0
"""What `tonnage run` says of programs whose advice is easily wrong: the whole screen against a golden file, byte for byte.

Each file of tests/golden/advice was written by hand before the program said it. What a run cannot repeat is masked: seconds,
the number of a process, the folder of the environment. TONNAGE_GOLDEN=FOLDER puts what was said there, to be compared by eye.
"""

import os
import pathlib
import re
import subprocess

import fork_servers
import pytest
from conftest import HERE, MAIN, ROOT, TEMPORARY, TONNAGE, libraries_of, python_of

GOLDEN = ROOT / "tests/golden/advice"
# name -> (options, words of the program's command line): what would be wrong to say of it stands in WRONG
CASES = {
    "diffusion": (["--gpu=rtx3060", "--memory=3GiB"], ["diffusion.py"]),
    "in_eval": (["--gpu=rtx3060", "--memory=1280MiB"], ["in_eval.py"]),
    "infers": (["--gpu=rtx3060", "--memory=1GiB"], ["infers.py"]),
    "adapters": (["--gpu=rtx3060", "--memory=1GiB"], ["adapters.py"]),
    "mixed": (["--gpu=rtx3060", "--memory=1GiB"], ["mixed.py"]),
    "pictures": (["--gpu=rtx3060"], ["pictures.py"]),
    "scores": (["--gpu=rtx3060", "--memory=2GiB"], ["scores.py"]),
    "twice": (["--gpu=rtx3060", "--memory=1280MiB"], ["twice.py"]),
    "words": (["--gpu=rtx3060", "--memory=4GiB"], ["words.py"]),
    "counts": (["--gpu=rtx3060", "--memory=1GiB"], ["counts.py"]),
    "narrow": (["--gpu=rtx3060", "--memory=1488MiB"], ["narrow.py"]),
    "old_card": (["--gpu=gtx1080ti", "--memory=1GiB"], ["mixed.py"]),
    "search": (["--gpu=rtx3060", "--memory=4000MiB"], ["search.py"]),
    "unlimited": (["--gpu=rtx3060", "--memory=4GiB"], ["unlimited.py"]),
}
# What must stand on none of the lines of these, whatever the golden file says.
WRONG = {
    "diffusion": ["in evaluation", "torch.utils.checkpoint", "Why   .*bucket", "that no backward"],
    "in_eval": ["no_grad", "LoRA", "16 bits", "16-bit"],
    "infers": ["16-bit", "16 bits", "LoRA", "Adam"],
    "adapters": ["LoRA\\)", "16-bit", "8-bit Adam", "before the first pass"],
    "mixed": ["autocast", "8-bit Adam"],
    "pictures": ["attention", "one large tensor", "shorter sequences"],
    "scores": ["Why   the batch", "Why   .*one large tensor"],
    "twice": ["Why   the model: parameters"],
    "words": ["Why   .*one large tensor", "Why   the batch"],
    "counts": ["step [29]", "its (3|480) samples", "on the CPU"],
    "narrow": [],
    "old_card": ["GTX 1080 Ti .* would hold"],
    "search": ["the program handled"],
    "unlimited": ["larger card", "Smallest card"],
}


def mask(text, python):
    text = text.replace(str(pathlib.Path(python).parent.parent), "ENVIRONMENT").replace(str(HERE), "HERE")
    text = re.sub(r"lib/python3\.\d+", "lib/python3", text)
    text = re.sub(r"^.*it/s\]\n", "", text, flags=re.M)  # progress bars
    text = re.sub(r", \d+\.\d s$", ", # s", text, flags=re.M)
    text = re.sub(r"^(\[rank0\]:)? +[\^~]+\n", "", text, flags=re.M)  # which Python metadata the place so, is its own
    return re.sub(r"\bProcess \d+\b", "Process #", text)


def screen(name, columns=None):
    """All that a terminal shows of the case."""
    options, program = CASES[name]
    python = python_of(MAIN)
    env = {**os.environ, "PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "dumb",
           "HF_HUB_OFFLINE": "1", "TMPDIR": TEMPORARY.name, "PYTHONWARNINGS": "ignore",
           "TONNAGE_NEED": "200"}  # seconds: enough on a busy machine, too  # fmt: skip
    env.pop("COLUMNS", None)
    if columns:
        env["COLUMNS"] = str(columns)
    words = list(map(str, [TONNAGE, "run", *options, "--", "python", *program]))
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "timeout": 300}
    folder, done = HERE / "programs/advised", None
    if fork_servers.can_fork([python, *program], {}):
        imports = (*fork_servers.IMPORTS, *libraries_of([folder / program[0]]))
        done = fork_servers.run_forked(TONNAGE, python, options, words, folder, env, imports=imports, **streams)
    if done is None:
        return mask(subprocess.run(words, cwd=folder, env=env, text=True, **streams).stdout, python)
    said, count = re.subn(fork_servers.RAW_CALLS, "", mask(done.stdout, python))
    assert count == 1, said
    return said


@pytest.mark.parametrize("name", CASES)
def test_screen(name):
    said = screen(name)
    if os.environ.get("TONNAGE_GOLDEN"):
        (pathlib.Path(os.environ["TONNAGE_GOLDEN"]) / f"{name}.txt").write_text(said)
    assert said == (GOLDEN / f"{name}.txt").read_text()
    for wrong in WRONG[name]:
        assert not re.search(wrong, said), wrong


def test_every_golden_file_has_a_case():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CASES) == set(WRONG)


def words_of(said):
    """From the cause on, without the places where lines end."""
    return said[said.index("  Why "):].split()


@pytest.mark.parametrize("name", ["diffusion", "twice"])
def test_narrow_screen(name):
    """On 80 columns nothing is wider, and nothing is lost."""
    wide, narrow = (GOLDEN / f"{name}.txt").read_text(), screen(name, 80)  # test_screen holds the first to what is said
    report = narrow[narrow.index("Does not fit"):]
    assert max(map(len, report.splitlines())) <= 80
    assert words_of(wide) == words_of(narrow)
