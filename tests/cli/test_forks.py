# SPDX-License-Identifier: Apache-2.0
"""Import once, fork the rest: trials of `tonnage fix` and `tonnage fit` on a fake program (fake_program.py) that Python
starts as it starts any other, without PyTorch. What is found must not depend on how the processes were made."""

import ctypes
import json
import os
import signal
import sys

import pytest
from command import HERE, wait_until

ROWS = [{"id": name, "title": name, "results": "same", "values": [None]} for name in ("foreach", "zero_grad", "no_grad")]
WISH = {"base": 1500, "saves": {"zero_grad": 800, "foreach": 100, "no_grad": 300}, "possible": ROWS}


@pytest.fixture
def program(tonnage):
    """program(library, body) -> command line: a script that imports `library`, a module that is no part of the program."""
    folder = tonnage.cwd / "lib"
    folder.mkdir()
    tonnage.env["PYTHONPATH"] = str(folder)

    def make(library="", body="", wish=WISH):
        (folder / "library.py").write_text(library)
        script = tonnage.cwd / "script.py"
        script.write_text("import library, runpy, os, sys\nwish = None\n%s\n" % body +
                          "runpy.run_path(%r, run_name='fake')\n" % str(HERE / "fake_program.py"))  # fmt: skip
        return [sys.executable, str(script), json.dumps(wish)]

    return make


@pytest.fixture
def fix(tonnage, schema):
    def run(words, *options, command="fix"):
        out = tonnage.cwd / "out.json"
        done = tonnage(command, "--gpu", "rtx3060", "--memory", "1GiB", "--json", out, *options, "--", *words, timeout=120)
        document = json.loads(out.read_text())
        schema(command, document)
        assert wait_until(lambda: tonnage.left_behind() == [] and tonnage.processes() == []), done.stderr
        return document

    return run


def findings(document):
    return [(row["id"], row["outcome"], row["saved_bytes"], row["peak_device_bytes"]) for row in document["changes"]]


def test_forked_trials_find_what_fresh_ones_find(fix, program):
    words = program()
    forked, fresh = fix(words), fix(words, "--fresh")
    assert forked["forked_trials"] == forked["trials"] - 1 > 3 and forked["not_forked_because"] is None
    assert fresh["forked_trials"] == 0 and fresh["not_forked_because"] is None
    assert findings(forked) == findings(fresh) and findings(forked)[0][:2] == ("zero_grad", "fits")


def test_a_thread_of_pyarrow_s_allocator_does_not_keep_a_program_from_forking(fix, program):
    """A FAKE of libarrow: its jemalloc reads this variable when it is loaded. The program does not see it."""
    library = """
import os, threading
if "background_thread:false" not in os.environ.get("JE_ARROW_MALLOC_CONF", "").split(","):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    document = fix(program(library, "assert 'JE_ARROW_MALLOC_CONF' not in os.environ"))
    assert document["not_forked_because"] is None and document["forked_trials"] == document["trials"] - 1 > 3


def test_fit_forks_with_another_argument_each_time(fix, program):
    words = program(wish={"base": 100, "sample": 20, "batch": 8, "possible": []})
    forked = fix([*words, "{batch}"], "--batch", "16", command="fit")
    fresh = fix([*words, "{batch}"], "--batch", "16", "--fresh", command="fit")
    assert forked["forked_trials"] > 2
    for figure in ("largest_batch", "peak_device_bytes", "margin_bytes"):
        assert forked["cards"][0][figure] == fresh["cards"][0][figure] > 0


def test_imports_happen_twice_at_most(fix, program):
    """In the fresh trial and in the server; a forked trial finds them done: its library has another process's number."""
    words = program("import os; here = os.getpid()",
                    "if 'zero_grad' in os.environ.get('TONNAGE_CHANGES', '') and library.here == os.getpid(): sys.exit(3)")
    document = fix(words)
    assert document["forked_trials"] > 3 and findings(document)[0][:2] == ("zero_grad", "fits")


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        ("import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "starts threads"),
        ("import ctypes, os\nctypes.CDLL(os.environ['TONNAGE_LIB'] + '/vgpu/libcudart.so.13').cudaFree(None)", "uses CUDA"),
    ],
)
def test_what_cannot_be_forked_is_started_anew(fix, program, library, reason):
    document = fix(program(library))
    assert reason in document["not_forked_because"] and findings(document)[0][:2] == ("zero_grad", "fits")
    assert findings(document) == findings(fix(program(library), "--fresh"))


@pytest.mark.parametrize(("jobs", "forked"), [("2", 0), ("1", 1)])
def test_a_program_that_notices_is_started_anew(fix, program, jobs, forked):
    """It takes more where its library was imported by another process. The plan was made of a fork by then, and the search begins again;
    one by one, only the check was forked, and it goes on."""
    words = program("import os; here = os.getpid()",
                    "if library.here != os.getpid():\n"
                    "    wish = __import__('json').loads(sys.argv[1]); wish['base'] += 50\n"
                    "    sys.argv[1] = __import__('json').dumps(wish)")  # fmt: skip
    document = fix(words, "--jobs", jobs)
    assert document["not_forked_because"] == "forked, the program has a different peak" and document["forked_trials"] == forked
    assert findings(document) == findings(fix(words, "--fresh"))


@pytest.mark.parametrize("more", [50, -50])
def test_what_a_fork_alone_takes_is_no_saving_and_no_loss(fix, program, more):
    """A trial that acted on nothing is made again in a new process, where it takes what the program does."""
    words = program("import os; here = os.getpid()",
                    "if library.here != os.getpid() and os.environ.get('TONNAGE_CHANGES') == 'foreach':\n"
                    "    wish = __import__('json').loads(sys.argv[1]); wish['base'] += %d\n"
                    "    sys.argv[1] = __import__('json').dumps(wish)" % more,
                    wish={**WISH, "saves": {"zero_grad": 200, "no_grad": 300}, "inert": ["foreach"]})  # fmt: skip
    document = fix(words)
    assert document["not_forked_because"] is None and 1 < document["forked_trials"] <= document["trials"] - 2, document
    assert ("foreach", "no_help", 0) in [row[:3] for row in findings(document)], findings(document)


def test_fit_goes_on_without_forks_where_they_are_not_the_same(fix, program):
    body = ("if library.here != os.getpid():\n"
            "    wish = __import__('json').loads(sys.argv[1]); wish['base'] += 50\n"
            "    sys.argv[1] = __import__('json').dumps(wish)")  # fmt: skip
    words = program("import os; here = os.getpid()", body, wish={"base": 100, "sample": 20, "batch": 8, "possible": []})
    found, fresh = (fix([*words, "{batch}"], "--batch", "16", *more, command="fit") for more in ((), ("--fresh",)))
    assert found["cards"][0]["largest_batch"] == fresh["cards"][0]["largest_batch"] > 0 and found["forked_trials"] == 1


@pytest.mark.parametrize(
    ("library", "body", "reason"),
    [
        ("import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(1000))", "", "importing once more"),
        ("import os\nhere = os.getpid()", "import time\nif library.here != os.getpid(): time.sleep(1000)", "a trial took"),
    ],
)
def test_a_fork_that_hangs_is_given_up(fix, program, library, body, reason):
    """As one that waits for a lock that another thread of its parent held."""
    document = fix(program(library, body))
    assert reason in document["not_forked_because"]
    assert findings(document)[0][:2] == ("zero_grad", "fits")


def test_a_module_of_the_program_is_not_imported_for_it(fix, program, tonnage):
    """Beside the script lies a module of a library's name: the program's own is what trials see."""
    words = program("raise SystemExit('the wrong one')")
    (tonnage.cwd / "library.py").write_text("mine = True\n")
    document = fix(words)
    assert document["forked_trials"] > 3 and findings(document)[0][:2] == ("zero_grad", "fits")


def test_a_script_around_python_is_started_anew(fix, program, tonnage):
    wrapper = tonnage.cwd / "run.sh"
    wrapper.write_text('#!/bin/bash\n"$@"\n')
    document = fix(["bash", str(wrapper), *program()])
    assert document["forked_trials"] == 0 and "started by another" in document["not_forked_because"]
    assert findings(document)[0][:2] == ("zero_grad", "fits")


def test_writes_of_forked_trials_change_nothing_real_and_do_not_meet(fix, program, tonnage):
    (tonnage.cwd / "kept").write_text("before")
    words = program("", "assert open('kept').read() == 'before'\nopen('kept', 'w').write('after')\n"
                        "open('made', 'x').close()\nopen(os.environ['TMPDIR'] + '/made', 'x').close()")  # fmt: skip
    document = fix(words)
    assert document["forked_trials"] > 3 and findings(document)[0][:2] == ("zero_grad", "fits")
    assert (tonnage.cwd / "kept").read_text() == "before" and not (tonnage.cwd / "made").exists()


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 2  # landlock_create_ruleset: its version


@pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")
def test_forked_trials_are_in_the_kernels_net(fix, program, tonnage):
    """What writes past libc is refused in forked trials, too: there alone it is tried."""
    words = program("import os; here = os.getpid()",
                    "import ctypes\nif library.here != os.getpid():\n"
                    "    assert ctypes.CDLL(None).syscall(2, b'%s/past', os.O_CREAT | os.O_WRONLY, 0o600) == -1"
                    % tonnage.cwd)  # fmt: skip
    assert fix(words)["forked_trials"] > 3
    assert not (tonnage.cwd / "past").exists()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_an_ended_search(tonnage, program, sent):
    """Both of a server that waits and of trials that it has forked."""
    wish = {"base": 1500, "possible": []}
    words = program("", "if 'survey' in os.environ.get('TONNAGE_CHANGES', ''): sys.argv[1] = '{\"base\": 1, \"sleep\": 60}'",
                    wish)  # fmt: skip
    process = tonnage.start("fix", "--gpu", "rtx3060", "--memory", "1GiB", "--", *words)
    # the server, and the survey, whose supervisor has told that it has begun
    assert wait_until(lambda: len(list(tonnage.temporary.glob("tonnage-*/changes/*.json"))) >= 1)
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert wait_until(lambda: tonnage.left_behind() == [] and tonnage.processes() == [])
