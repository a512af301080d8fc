# SPDX-License-Identifier: Apache-2.0
"""Files of weights of which only the headers are there: every road through the C library sees the file that the header
describes, with zeros for what is not there, without a page of a file for it, and nothing real is changed.

What is expected is what the same program finds in a real file of zeros with that header, outside of a run.
"""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import zipfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_overlay import ROOT, compile_c, fingerprint  # noqa: E402

TONNAGE = ROOT / "build/bin/tonnage"
ROADS = pathlib.Path(__file__).parent / "weights_roads.py"
MIB = 1 << 20
LARGE = 40 * MIB


def header(*sizes, metadata=True):
    """The first bytes of a safetensors file with tensors of so many bytes, and its whole length."""
    at, members = 0, {"__metadata__": {"format": "pt", "a \"name\"": "{[\\\""}} if metadata else {}
    for number, size in enumerate(sizes):
        members['layer "%d" {[' % number] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(members).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, 8 + len(text) + at


def run(folder, *words, options=()):
    report = folder.with_suffix(".json")  # beside it: nothing in it may change
    done = subprocess.run([TONNAGE, "run", "--gpu", "a100-80", "--json", report, *options, "--", *words],
                          capture_output=True, text=True, timeout=120)
    document = json.loads(report.read_text())
    report.unlink()
    return done, document


def run_roads(folder, file, options=()):
    done, document = run(folder, sys.executable, ROADS, file, options=options)
    assert done.returncode == 12, done.stderr
    return json.loads(done.stdout), document


@pytest.fixture
def model(tmp_path):
    start, length = header(100, LARGE, 5 * MIB)
    file = tmp_path / "model.safetensors"
    file.write_bytes(start)
    return file, length


def test_every_road_sees_the_whole_file(model, tmp_path):
    file, length = model
    before = fingerprint(tmp_path)
    seen, document = run_roads(tmp_path, file)
    assert fingerprint(tmp_path) == before
    with open(file, "r+b") as whole:
        whole.truncate(length)
    real = json.loads(subprocess.run([sys.executable, ROADS, file], capture_output=True, check=True).stdout)
    assert real["answers"] == seen["answers"]
    assert seen["answers"]["stat"] == length
    # A pass over the whole file by each road, and no road costs the memory of its bytes.
    assert seen["file_kib"] - seen["file_kib_before"] < 8 << 10, seen
    [stand_in] = document["stand_ins"]
    assert stand_in["kind"] == "weights" and stand_in["path"] == str(file)
    assert stand_in["bytes"] == 100 + LARGE + 5 * MIB and stand_in["tensors"] == 3
    assert stand_in["read_bytes"] > 2 * LARGE


def test_reading_all_of_it_costs_no_memory(model, tmp_path):
    file, length = model
    code = ("import sys; d = open(sys.argv[1], 'rb').read(); n = len(d); s = open('/proc/self/status').read(); "
            "print(n, s.split('RssAnon:')[1].split()[0])")
    done, _ = run(tmp_path, sys.executable, "-c", code, file)
    size, anonymous = map(int, done.stdout.split())
    assert size == length and anonymous < 24 << 10


def test_bytes_that_are_there_are_kept(tmp_path):
    start, length = header(64, LARGE)
    file = tmp_path / "cut.safetensors"
    file.write_bytes(start + bytes(range(64)) + b"beginning")
    code = "import sys; d = open(sys.argv[1], 'rb').read(); print(len(d), d[int(sys.argv[2]):][:80].hex(), max(d[-1000:]))"
    done, document = run(tmp_path, sys.executable, "-c", code, file, str(len(start)))
    assert done.stdout.split() == [str(length), (bytes(range(64)) + b"beginning" + bytes(7)).hex(), "0"]
    assert document["stand_ins"][0]["bytes"] == LARGE and document["stand_ins"][0]["tensors"] == 1


@pytest.mark.parametrize("content", [
    b"", b"short", bytes(64), struct.pack("<Q", 1 << 40) + b"{" * 64, struct.pack("<Q", 64) + b"{" + b"x" * 20,
    header(100)[0] + bytes(100), header()[0], b"\xff" * 4096, struct.pack("<Q", 34) + b'{"a":{"data_offsets":[9,18446744073709551616]}}',
    struct.pack("<Q", 60) + b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[90000000,1]}}',
])
def test_other_files_are_read_as_they_are(tmp_path, content):
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    code = "import os, sys; print(os.stat(sys.argv[1]).st_size, open(sys.argv[1], 'rb').read().hex())"
    done, document = run(tmp_path, sys.executable, "-c", code, file)
    assert done.stdout.split() == [str(len(content)), content.hex()][:1 + bool(content)]
    assert document["stand_ins"] == []


def test_real_reads_what_is_there(model, tmp_path):
    file, _ = model
    done, document = run(tmp_path, sys.executable, "-c", "import os, sys; print(os.stat(sys.argv[1]).st_size)", file,
                         options=["--weights", "real"])
    assert int(done.stdout) == file.stat().st_size and document["stand_ins"] == []


def test_shape_leaves_large_tensors_of_whole_files_alone(tmp_path):
    start, length = header(100, LARGE)
    file = tmp_path / "model.safetensors"
    file.write_bytes(start + b"s" * 100 + b"x" * LARGE)
    code = "import sys; d = open(sys.argv[1], 'rb').read(); print(len(d), d.count(b's') > 99, d.count(b'x'))"
    done, document = run(tmp_path, sys.executable, "-c", code, file, options=["--weights", "shape"])
    assert done.stdout.split() == [str(length), "True", "0"]
    [stand_in] = document["stand_ins"]
    read = stand_in.pop("read_bytes")
    assert stand_in == {"kind": "weights_not_read", "path": str(file), "tensors": 1, "bytes": LARGE, "count": None,
                        "assumed": []}
    assert LARGE - (8 << 10) < read <= LARGE  # but for what shares a block with the header
    done, document = run(tmp_path, sys.executable, "-c", code, file)
    assert done.stdout.split()[2] == str(LARGE) and document["stand_ins"] == []


def test_shape_knows_pytorchs_archives(tmp_path):
    file = tmp_path / "pytorch_model.bin"
    with zipfile.ZipFile(file, "w") as archive:  # stored, as torch.save does
        archive.writestr("archive/data.pkl", b"p" * (1 << 17))
        archive.writestr("archive/data/0", b"x" * LARGE)
        archive.writestr("archive/data/1", b"s" * 100)
        archive.writestr("archive/version", b"3\n")
    code = ("import sys; d = open(sys.argv[1], 'rb').read(); print(len(d), d.count(b'p' * (1 << 17)), d.count(b's' * 100), "
            "d.count(b'x' * 10)); import zipfile; print(zipfile.ZipFile(sys.argv[1]).namelist())")
    done, document = run(tmp_path, sys.executable, "-c", code, file, options=["--weights", "shape"])
    assert done.stdout.split("\n")[0].split() == [str(file.stat().st_size), "1", "1", "0"], done.stderr
    assert "archive/data/1" in done.stdout
    assert [(row["bytes"], row["kind"]) for row in document["stand_ins"]] == [(LARGE, "weights_not_read")]


def test_links_of_the_hubs_cache_are_followed(model, tmp_path):
    file, length = model
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshots").mkdir()
    file.rename(tmp_path / "blobs/0123abcd")
    (tmp_path / "snapshots/model.safetensors").symlink_to("../blobs/0123abcd")
    code = ("import os, sys; p = os.path.realpath(sys.argv[1]); print(os.stat(sys.argv[1]).st_size, os.stat(p).st_size, "
            "os.lstat(sys.argv[1]).st_size, os.path.samestat(os.stat(p), os.fstat(os.open(sys.argv[1], os.O_RDONLY))))")
    done, document = run(tmp_path, sys.executable, "-c", code, tmp_path / "snapshots/model.safetensors")
    assert done.stdout.split() == [str(length), str(length), str(len("../blobs/0123abcd")), "True"]
    assert [row["path"] for row in document["stand_ins"]] == [str(tmp_path / "blobs/0123abcd")]


def test_a_write_goes_to_scratch(model, tmp_path):
    file, _ = model
    before = fingerprint(tmp_path)
    code = ("import sys; f = open(sys.argv[1], 'rb').read(9); open(sys.argv[1], 'wb').write(b'new'); "
            "print(open(sys.argv[1], 'rb').read())")
    done, _ = run(tmp_path, sys.executable, "-c", code, file)
    assert done.stdout == "b'new'\n"
    assert fingerprint(tmp_path) == before


def test_a_failed_check_names_the_file(model, tmp_path):
    file, _ = model
    expected = hashlib.sha256(b"the real weights").hexdigest()
    code = ("import hashlib, sys; h = hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest(); "
            "assert h == sys.argv[2], 'checksum mismatch'")
    done, document = run(tmp_path, sys.executable, "-c", code, file, expected)
    assert done.returncode == 1
    [finding] = [row for row in document["findings"] if row["id"] == "weights_read"]
    assert str(file) in finding["what"]


def test_processes_share_one_stand_in(model, tmp_path):
    file, length = model
    code = ("import subprocess, sys\np = [subprocess.Popen(['sha256sum', sys.argv[1]], stdout=subprocess.PIPE) for _ in range(8)]\n"
            "print(len({x.communicate()[0] for x in p}), subprocess.run(['stat', '-c', '%s', sys.argv[1]], "
            "capture_output=True).stdout.decode())")
    done, document = run(tmp_path, sys.executable, "-c", code, file)
    assert done.stdout.split() == ["1", str(length)]
    assert len(document["stand_ins"]) == 1


OWN = r"""
import ctypes, hashlib, json, os, sys
size, file = 40 << 20, "last.pt"
def resident():
    with open("/proc/self/status") as status:
        return int(status.read().split("RssAnon:")[1].split()[0]) >> 10
with open(file, "wb") as stream:
    for piece in (b"head" * 1000, bytes(size), b"middle" * 100, bytes(size), b"end"):
        stream.write(piece)
answers, libc = {}, ctypes.CDLL(None)
libc.fopen.restype, libc.fread.restype = ctypes.c_void_p, ctypes.c_size_t
whole = os.stat(file).st_size
def note(name, count, memory):
    answers[name] = [count, hashlib.sha256(memory).hexdigest()]
memory, before = bytearray(whole), resident()
with open(file, "rb", buffering=0) as stream:
    count = stream.readinto(memory)
grown = resident() - before
note("read", count, memory)
used = bytearray(b"u") * whole
fd = os.open(file, os.O_RDONLY)
note("pread over what was used", os.preadv(fd, [used], 10), used)
stream = ctypes.c_void_p(libc.fopen(file.encode(), b"rb"))
for name, count in (("fread", 3000), ("fread on", size), ("fread to the end", whole)):
    used = bytearray(b"u") * count
    target = (ctypes.c_char * count).from_buffer(used)
    note(name, libc.fread(target, ctypes.c_size_t(1), ctypes.c_size_t(count), stream), used)
    answers[name].append([libc.ftell(stream), libc.feof(stream)])
other = os.open(file, os.O_WRONLY)
try:
    os.preadv(other, [used], 0)
except OSError as error:
    answers["not for reading"] = error.errno
print(json.dumps([answers, grown]))
"""


def test_zeros_that_the_program_wrote_cost_no_memory_to_read(tmp_path, monkeypatch):
    """A checkpoint of the run itself reads as it does outside of a run, and its zeros are no pages."""
    (tmp_path / "work").mkdir()
    plain = subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True, cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path / "work")
    done, _ = run(tmp_path / "work", sys.executable, "-c", OWN)
    assert done.returncode == 12, done.stderr
    (expected, with_pages), (found, without) = json.loads(plain.stdout), json.loads(done.stdout)
    assert found == expected
    assert without <= with_pages - 75  # MiB: even what the buffer had before is given back
