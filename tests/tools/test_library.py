# SPDX-License-Identifier: Apache-2.0
"""libtonnage as another program meets it: installed into a folder, found by pkg-config, linked, run.

The snapshot is written here, so that its figures are known without our reader.
"""

import os
import pathlib
import pickle
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"
EXAMPLE = ROOT / "examples/library/what_was_alive.c"
MIB = 1 << 20


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The prefix of an installation of the release build."""
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    return prefix


def flags(installed, *words):
    """What pkg-config says of the installed library, moved to where it lies."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    command = ["pkg-config", f"--define-variable=prefix={installed}", *words, "tonnage"]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()


def build(installed, folder, *options):
    """The example, built as its head says, and with these options."""
    built = folder / "what_was_alive"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-std=c17", EXAMPLE, "-g", *options, *flags(installed, "--cflags", "--libs"),
                    f"-Wl,-rpath,{installed / 'lib'}", "-o", built], check=True)
    return built


@pytest.fixture(scope="session")
def program(installed, tmp_path_factory):
    return build(installed, tmp_path_factory.mktemp("built"))


def frame(name, line):
    return {"name": name, "filename": "/work/train.py", "line": line}


def snapshot():
    """10 MiB from line 7 and 4 MiB from line 9 are alive at the peak, and 6 MiB of the segment are free."""
    base, time = 0x7f0000000000, 1_700_000_000_000_000

    def event(action, address, size, line, number):
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time + number,
                "frames": [frame("train", line)]}

    trace = [event("segment_alloc", base, 20 * MIB, 7, 0), event("alloc", base, 10 * MIB, 7, 1),
             event("alloc", base + 10 * MIB, 4 * MIB, 9, 2), event("free_requested", base + 10 * MIB, 4 * MIB, 9, 3),
             event("free_completed", base + 10 * MIB, 4 * MIB, 9, 4)]
    blocks = [{"address": base, "size": 10 * MIB, "requested_size": 10 * MIB, "state": "active_allocated",
               "frames": [frame("train", 7)]},
              {"address": base + 10 * MIB, "size": 10 * MIB, "requested_size": 0, "state": "inactive", "frames": []}]
    segment = {"device": 0, "address": base, "total_size": 20 * MIB, "allocated_size": 10 * MIB,
               "active_size": 10 * MIB, "requested_size": 10 * MIB, "stream": 0, "segment_type": "large",
               "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": {}}


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot()))
    return path


def test_example_tells_what_was_alive_at_the_peak(program, recorded):
    done = subprocess.run([program, recorded], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "peak: 20.0 MiB reserved, 14.0 MiB allocated"
    assert re.search(r"^  cached +6\.0 MiB$", done.stdout, re.M)
    assert re.search(r"^  /work/train\.py:7 \w+, 1 blocks, 10\.0 MiB$", done.stdout, re.M)
    assert re.search(r"^  /work/train\.py:9 \w+, 1 blocks, 4\.0 MiB$", done.stdout, re.M)
    assert re.search(r"^fits .+ GiB\)$", lines[-1])


def test_example_says_what_is_wrong_with_a_file(program, tmp_path):
    bad = tmp_path / "no-snapshot"
    bad.write_bytes(b"\x80\x04garbage")
    for path in (bad, tmp_path / "not-there"):
        done = subprocess.run([program, path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith(f"{path}: ") and len(done.stderr.splitlines()) == 1


def test_example_runs_under_sanitizers(installed, recorded, tmp_path):
    """The program is instrumented, the library is not: what it takes and does not give back, or frees twice, is seen all the same."""
    watched = build(installed, tmp_path, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    bad = tmp_path / "no-snapshot"
    bad.write_bytes(b"\x80\x04garbage")
    for path, status in ((recorded, 0), (bad, 1)):
        done = subprocess.run([watched, path], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1:exitcode=99"})
        assert done.returncode == status and "Sanitizer" not in done.stderr, done.stderr


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_example_leaks_nothing_and_reads_nothing_unset(program, recorded):
    words = ["valgrind", "-q", "--leak-check=full", "--error-exitcode=99", program, recorded]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def declared():
    """The functions that the installed headers declare."""
    text = "".join((ROOT / "include/tonnage" / f"{name}.h").read_text()
                   for name in ("tonnage", "status", "snapshot", "memory", "oom", "card"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(tn_\w+)\(", re.sub(r"typedef[^;{]*\(\*?\w+\)?\([^;]*;|typedef tn_status tn_oom_found\([^;]*;", "", text)))


def test_library_exports_what_its_headers_declare_and_nothing_else(installed):
    library = installed / "lib/libtonnage.so.0"
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in listing.splitlines()} - {"TONNAGE_0"}
    assert exported == declared()


def test_library_neither_prints_nor_exits(installed):
    library = installed / "lib/libtonnage.so.0"
    listing = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
    used = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    forbidden = {"printf", "puts", "putchar", "perror", "exit", "_exit", "abort", "signal", "sigaction", "fork", "stdout",
                 "stderr", "__printf_chk", "pthread_create"}
    assert used & forbidden == set()


def test_only_the_library_headers_are_installed(installed):
    names = {path.name for path in (installed / "include/tonnage").iterdir()}
    assert names == {"tonnage.h", "status.h", "snapshot.h", "memory.h", "oom.h", "card.h"}


EVERYTHING = r"""
#include <tonnage/tonnage.h>
#include <stdio.h>
#include <string.h>

static tn_status
found(void *context, const struct tn_oom_error *error)
{
	size_t *count = (size_t *)context;
	for (size_t i = 0; i < error->figure_count; i++)
		if (strcmp(error->figures[i].name, "tried_bytes") == 0)
			printf("tried %llu on device %lld\n", (unsigned long long)error->figures[i].bytes, (long long)error->device);
	printf("%s, %zu advice\n", error->cause, error->advice_count);
	++*count;
	return TN_OK;
}

int
main(void)
{
	static const char text[] = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
		"capacity of 11.75 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 10.75 GiB "
		"memory in use. Of the allocated memory 10.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by "
		"PyTorch but unallocated.\n";
	size_t count = 0;
	struct tn_card card;
	if (tn_oom_scan(text, strlen(text), found, &count) != TN_OK || count != 1)
		return 1;
	if (tn_card_find("no such card", &card) != TN_NOT_FOUND || tn_card_find("RTX3060", &card) != TN_OK)
		return 2;
	printf("%s %d.%d\n", card.alias, card.compute_major, card.compute_minor);
	if (tn_card_at(tn_card_count(), &card) != TN_NOT_FOUND || tn_card_at(tn_card_count() - 1, &card) != TN_OK)
		return 3;
	if (tn_card_smallest(UINT64_MAX, &card) != TN_NOT_FOUND || tn_error_text()[0] == '\0')
		return 4;
	printf("%s, ABI %d\n", tn_version(), TN_ABI_VERSION);
	return 0;
}
"""


@pytest.mark.parametrize("compiler, suffix", [
    (["cc", "-std=c17"], "c"),
    pytest.param(["c++", "-std=c++20"], "cc", marks=pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler"))])
def test_errors_and_cards_as_data(installed, tmp_path, compiler, suffix):
    source, built = tmp_path / f"all.{suffix}", tmp_path / "all"
    source.write_text(EVERYTHING)
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", source, *flags(installed, "--cflags", "--libs"),
                    f"-Wl,-rpath,{installed / 'lib'}", "-o", built], check=True)
    done = subprocess.run([built], capture_output=True, text=True, timeout=60)
    version = (ROOT / "python/tonnage/guest/version").read_text().strip()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"tried {2 << 30} on device 0"
    assert re.fullmatch(r"\w+, [1-3] advice", lines[1])
    assert lines[2:] == ["rtx3060 8.6", f"{version}, ABI 0"]
