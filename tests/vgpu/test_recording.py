# SPDX-License-Identifier: Apache-2.0
"""Nothing that a program does loses the recording, and the recording changes nothing of what torch.compile makes."""

import shlex
import subprocess

import pytest

from conftest import ENDS, HERE, MAIN, WHEELS, python_of, run_tonnage

FORKED = True  # ../fork_servers.py

GPU = "--gpu=rtx3060"
PLAIN_GRAPHS = HERE / "programs/ways_to_compile.txt"  # what the program prints on the CPU, in plain Python, with each wheel


def lost(run):
    return [row for row in run.report["sensors"] if row["state"] == "lost"]


def graphs(text):
    return {words[1]: words[2:] for words in map(str.split, text.splitlines()) if words[:1] == ["way:"]}


@pytest.mark.parametrize("wheel", WHEELS)
def test_torch_compile_makes_the_graphs_that_it_makes_without(tonnage, wheel):
    """23 ways to write it."""
    run = tonnage(wheel, ["programs/ways_to_compile.py", "cuda"], GPU, "--steps=all")
    expected = graphs(PLAIN_GRAPHS.read_text())
    assert len(expected) >= 20 and all(int(words[0]) >= 1 for words in expected.values()), expected
    assert graphs(run.stdout) == expected, run.explain()
    assert lost(run) == [] and "global hooks" not in run.stderr, run.explain()
    assert run.report["steps"]["seen"] > 0


@pytest.mark.long
@pytest.mark.parametrize("wheel", [MAIN, *ENDS])
def test_the_graphs_without_are_those_of_plain_python(wheel):
    plain = subprocess.run([python_of(wheel), HERE / "programs/ways_to_compile.py", "cpu"], capture_output=True, text=True, timeout=300)
    assert graphs(plain.stdout) == graphs(PLAIN_GRAPHS.read_text()), plain.stdout + plain.stderr


@pytest.mark.parametrize("wheel", WHEELS)
def test_tensors_without_memory_are_left_alone(tonnage, wheel):
    run = tonnage(wheel, "programs/tensors_without_memory.py", GPU)
    assert run.status == 0 and run.stdout == "three steps\n", run.explain()
    assert lost(run) == [] and run.report["steps"]["seen"] == 3, run.explain()


def test_a_value_read_on_autograds_thread(tonnage):
    run = tonnage(MAIN, "programs/mask_backward.py", GPU)
    assert run.status == 0 and lost(run) == [] and run.report["steps"]["seen"] == 5, run.explain()


@pytest.mark.fresh
def test_libraries_that_leave_no_room_for_static_thread_local_variables(tonnage, tmp_path):
    """As librosa, scikit-learn and numba together: what they need of the 1,664 bytes that glibc sets aside for libraries that are
    opened late must be there beside what the virtual GPU needs."""
    source, library, program = (tmp_path / name for name in ("greedy.c", "libgreedy.so", "program.py"))
    source.write_text("static __thread char kept[900] __attribute__((tls_model(\"initial-exec\")));\n"
                      "char *greedy(void) { return kept; }\n")  # fmt: skip
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    program.write_text("import ctypes, torch\nctypes.CDLL(%r).greedy()\n" % str(library)
                       + "for _ in range(3):\n    torch.zeros(4, device='cuda', requires_grad=True).sum().backward()\n")  # fmt: skip
    run = tonnage(MAIN, str(program), GPU)
    assert run.status == 0 and lost(run) == [], run.explain()
    assert run.report["at_peak"]["by_category"]["context"] > 0, run.explain()


@pytest.mark.fresh
@pytest.mark.parametrize("wheel", WHEELS)
def test_a_program_that_compiles_nothing_is_not_made_to_import_the_compiler(tonnage, wheel):
    """Neither when it runs out of memory nor at its end, where a record of its memory is taken; and it still can."""
    run = tonnage(wheel, "programs/which_compiler.py", GPU)
    assert run.stdout.split("\n") == ["caught", "end", ""] and run.report["at_peak"] is not None, run.explain()
    run = tonnage(wheel, ["programs/which_compiler.py", "itself"], GPU)
    lines = run.stdout.split("\n")
    assert lines[:2] == ["caught", "import torch._inductor"] and lines[-3:] == ["torch._inductor", "end", ""], run.explain()
    assert run.report["at_peak"] is not None and lost(run) == [], run.explain()


# How a program may start Python so that PYTHONPATH, by which the hook is found otherwise, does not reach it.
ROADS = (
    "{python} {options} -c {program}",
    "env PYTHONPATH=. {python} {options} -c {program}",
    "export PYTHONPATH=/tmp; {python} {options} -c {program}",
    "unset PYTHONPATH; {python} {options} -c {program}",
    "env -i {python} {options} -c {program}",
)
TELL = "import sys, colorsys; print('_tonnage_guest' in sys.modules, [p for p in sys.path if 'tonnage/guest' in p], dir())"


@pytest.mark.parametrize("options", ["", "-I", "-E", "-S", "-P", "-I -S", "-s"])
def test_the_hook_is_there_however_python_is_started(tonnage, options, tmp_path):
    """It leaves no name in __main__ and no folder on sys.path."""
    words = {"python": shlex.quote(python_of(MAIN)), "options": options, "program": shlex.quote(TELL)}
    text = "; ".join(road.format(**words) for road in ROADS)
    done = run_tonnage([GPU], ["sh", "-c", text], tmp_path)
    plain = subprocess.run([python_of(MAIN), "-c", "print(sorted(dir() + ['colorsys', 'sys']))"], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(ROADS), done.explain()
    names = eval(plain.stdout)
    for line in lines:
        assert line.startswith("True [] ") and sorted(eval(line[len("True [] "):])) == names, done.explain()


def test_steps_are_counted_where_the_path_is_ignored(tonnage):
    run = tonnage(MAIN, ["-I", str(HERE / "programs/five_steps.py")], GPU)
    assert run.status == 0 and run.report["steps"]["seen"] == 5, run.explain()


def test_the_hook_may_come_in_the_middle_of_the_import_of_torch(tonnage):
    """Nothing opens a file before torch does."""
    packages = subprocess.run([python_of(MAIN), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True,
                              text=True).stdout.strip()  # fmt: skip
    text = (HERE / "programs/five_steps.py").read_text()
    run = tonnage(MAIN, ["-S", "-c", f"import sys; sys.path.append({packages!r})\n{text}"], GPU)
    assert run.status == 0 and run.report["steps"]["seen"] == 5, run.explain()


def test_what_is_kept_for_backward_is_known_of_a_late_peak(tonnage):
    """By hand: at step 30 exp keeps its result, and the product its second factor, 16 MiB each."""
    run = tonnage(MAIN, "programs/late_peak.py", GPU, "--steps=all")
    held = run.report["at_peak"]["by_category"]
    assert run.report["at_peak"]["step"] == 30, run.explain()
    assert held["activations"] == 16 << 20 and held["inputs"] == 16 << 20, run.explain()


def test_compiled_code_is_kept_and_named_by_the_programs_lines(tonnage, tmp_path):
    """Two runs. The second compiles nothing; in both, the large activation is that of line 15."""
    own, theirs = tmp_path / "cache", tmp_path / "theirs"
    theirs.mkdir()
    env = {"XDG_CACHE_HOME": str(own), "TORCHINDUCTOR_CACHE_DIR": str(theirs), "TRITON_CACHE_DIR": str(theirs)}
    for hits in (False, True):
        run = tonnage(MAIN, "programs/compiled.py", GPU, "--steps=all", env=env)
        assert run.status == 0 and (int(run.stdout.split()[1]) > 0) is hits, run.explain()
        assert lost(run) == [] and run.report["scratch"] is None, run.explain()
        largest = max((row for row in run.report["at_peak"]["holders"] if row["category"] == "activations"),
                      key=lambda row: row["bytes"])  # fmt: skip
        assert largest["file"] == str(HERE / "programs/compiled.py"), run.explain()
        assert largest["line"] in (14, 15) and largest["function"] == "forward (compiled)", run.explain()
    assert list(theirs.iterdir()) == [] and len(list((own / "tonnage/compile").glob("*/inductor"))) == 1
