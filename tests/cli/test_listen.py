# SPDX-License-Identifier: Apache-2.0
"""`tonnage explain -- COMMAND`: the command's output and status are its own; what its output ends with is explained."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from command import TONNAGE, wait_until

OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 0.50 GiB is "
       "free. Process 7 has 7.00 GiB memory in use. Of the allocated memory 6.50 GiB is allocated by PyTorch, and 100.00 MiB is reserved "
       "by PyTorch but unallocated.")
FAILS = f"import sys; print('step 1'); sys.stdout.flush(); sys.stderr.write({OOM!r} + chr(10)); sys.exit(3)"


def python(text):
    return ["--", sys.executable, "-c", text]


def test_output_and_status_are_the_commands(tonnage):
    done = tonnage("explain", *python(FAILS))
    assert done.returncode == 3 and done.stdout == "step 1\n"
    own, _, words = done.stderr.partition("\ntonnage: the command ended with status 3\n")
    assert own == OOM + "\n" and words.startswith("Out of memory on GPU 0")


def test_bytes_pass_unchanged(tonnage):
    text = "import sys; data = bytes(range(256)) * 5000; sys.stdout.buffer.write(data); sys.stderr.buffer.write(data[::-1])"
    done = subprocess.run([TONNAGE, "explain", *python(text)], capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout == bytes(range(256)) * 5000 and done.stderr == done.stdout[::-1]


def test_both_streams_in_one_place_keep_their_order(tonnage):
    text = "import os\nfor i in range(2000): os.write(1 + i % 2, b'%d\\n' % i)"
    done = subprocess.run([TONNAGE, "explain", *python(text)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.stdout.split() == [b"%d" % i for i in range(2000)]


def test_json(tonnage, schema):
    done = tonnage("explain", "--json", "out.json", *python(FAILS))
    document = json.loads((tonnage.cwd / "out.json").read_text())
    schema("explain", document)
    assert done.returncode == 3 and document["errors"][0]["fields"]["tried_bytes"] == 2 << 30
    # A command that ended well, although it met one: nothing is said, but the JSON has it.
    done = tonnage("explain", "--json=out.json", *python(FAILS.replace("sys.exit(3)", "0")))
    assert done.returncode == 0 and done.stderr == OOM + "\n"
    assert len(json.loads((tonnage.cwd / "out.json").read_text())["errors"]) == 1


def test_the_end_of_a_long_output_is_what_counts(tonnage):
    text = f"import sys\nfor i in range(300): sys.stdout.write('x' * 99 + chr(10)); sys.stdout.write(('y' * 99 + chr(10)) * 1000)\nprint({OOM!r}); sys.exit(1)"
    done = tonnage("explain", *python(text))
    assert done.returncode == 1 and "Out of memory on GPU 0" in done.stderr and len(done.stdout) > 30_000_000


@pytest.mark.parametrize("words, status, said", [
    (["--", "no-such-program"], 127, "program not found"),
    (["--", "/etc/passwd"], 126, "cannot be executed"),
    (["--"], 2, "no command"),
    (["a.log", "--", "true"], 2, "stands alone"),
    (["--json", "--", "true"], 2, "wants a file"),
])  # fmt: skip
def test_what_cannot_be_run(tonnage, words, status, said):
    done = tonnage("explain", *words)
    assert done.returncode == status and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_signal(tonnage):
    done = tonnage("explain", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137 and "the host's memory" in done.stderr


def test_what_is_sent_to_it_reaches_the_command(tonnage):
    text = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); print('up', flush=True); time.sleep(60)"
    process = tonnage.start("explain", *python(text))
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 5


def test_interrupt_is_the_commands(tonnage):
    text = "import sys, time\nprint('up', flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('saved', flush=True); sys.exit(7)"
    process = tonnage.start("explain", *python(text), start_new_session=True)
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, signal.SIGINT)
    output, words = process.communicate(timeout=30)
    assert process.returncode == 7 and output == "saved\n" and "ended with status 7" in words


def test_a_daemon_that_keeps_the_output_open_holds_nobody_up(tonnage):
    started = time.monotonic()
    done = tonnage("explain", "--", "sh", "-c", "sleep 30 & echo $! > daemon; exit 4")
    assert done.returncode == 4 and time.monotonic() - started < 20
    os.kill(int((tonnage.cwd / "daemon").read_text()), signal.SIGKILL)


def test_input_is_the_commands(tonnage):
    assert tonnage("explain", "--", "cat", input="a\nb\n").stdout == "a\nb\n"


def test_a_reader_that_is_gone_ends_the_command(tonnage):
    done = subprocess.run(f"{TONNAGE} explain -- yes | head -1", shell=True, capture_output=True, timeout=60, text=True)
    assert done.stdout == "y\n"


def test_a_terminal_stays_a_terminal(tonnage):
    ours, theirs = pty.openpty()
    text = "import sys; print(sys.stdout.isatty(), sys.stderr.isatty(), sys.stdin.isatty())"
    process = subprocess.Popen([TONNAGE, "explain", *python(text)], stdin=theirs, stdout=theirs, stderr=theirs)
    assert process.wait(30) == 0
    os.close(theirs)
    assert wait_until(lambda: os.read(ours, 4096)) == b"True True True\r\n"
    os.close(ours)
