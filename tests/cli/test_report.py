# SPDX-License-Identifier: Apache-2.0
"""`tonnage report`: the words for a person, JSON against its schema, and each format read by a reader of its own."""

import csv
import gzip
import io
import json
import pathlib
import pickle
import re
import sqlite3
import sys

import fake_record
import page_rules
import perfetto_engine
import pytest
from command import ROOT

MIB = 1 << 20
HOLDINGS = [
    ("parameters", 400 * MIB, 10, "head.weight"),
    ("activations", 300 * MIB, 20, ""),
    ("activations", 100 * MIB, 21, ""),
    (None, 64 * MIB, 30, ""),
]
RESERVED = 1024 * MIB


@pytest.fixture
def snapshot(tonnage):
    """snapshot(holdings, name, oom): the path of a snapshot, its trace ending with an out-of-memory of so many bytes."""

    def write(holdings=HOLDINGS, name="a.pickle", oom=None, marked=True):
        record = fake_record.snapshot(holdings, RESERVED)
        trace = record["device_traces"][0]
        if oom:
            trace.append({"action": "oom", "device_free": 8 * MIB, "size": oom, "stream": 0,
                          "time_us": trace[-1]["time_us"] + 10, "frames": fake_record.frames(40)})  # fmt: skip
        if not marked:
            del record["tonnage"]
        path = tonnage.cwd / name
        path.write_bytes(pickle.dumps(record))
        return path

    return write


@pytest.fixture
def valid():
    """valid(document): keeps report.schema.json, whose references go to run.schema.json."""
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")

    def load(name):
        return json.loads((ROOT / "doc/format" / f"{name}.schema.json").read_text())

    registry = referencing.Registry().with_resource(
        "run.schema.json", referencing.Resource.from_contents(load("run")))  # fmt: skip
    return jsonschema.Draft202012Validator(load("report"), registry=registry).validate


def report(tonnage, *words, status=0):
    done = tonnage("report", *words)
    assert done.returncode == status, done.stderr
    return done


def as_json(tonnage, *words):
    return json.loads(report(tonnage, "--json", "-", *words).stdout)


# ---- for a person ----

PEAK = """\
The peak of GPU 0: PyTorch reserved 1.00 GiB, 864.0 MiB of it in tensors
  in forward of step 1, 0.000 s after the first event
  made by /x/model.py:30 forward

  At the peak                                 MiB
    parameters       ████████████████████   400.0   /x/model.py:10 forward
    activations      ████████████████████   400.0   /x/model.py:20 forward · 300 MiB
                                                    /x/model.py:21 forward · 100 MiB
    cached, unused   ████████               160.0
    temporaries      ███                     64.0   /x/model.py:30 forward

  Reserved and unused: 160.0 MiB in 1 piece of 1 segment, the largest 160.0 MiB
  Seen: 5 events of GPU 0 over 0.000 s
"""


def test_text(tonnage, snapshot):
    text = report(tonnage, snapshot()).stdout
    assert text == PEAK


def test_text_of_an_out_of_memory(tonnage, snapshot):
    path = snapshot(oom=200 * MIB)
    text = report(tonnage, path).stdout
    assert text.startswith("GPU 0 ran out of memory in forward of step 1\n  /x/model.py:40 forward\n"
                           "  asked 200.0 MiB, 8.0 MiB free: short by 192.0 MiB\n"), text  # fmt: skip
    assert "\n  Why   " in text and "\n  Next  " in text
    assert report(tonnage, path, "--at", "peak").stdout.startswith("The peak of GPU 0: ")


def test_what_is_inferred_is_said(tonnage, snapshot):
    text = report(tonnage, snapshot(marked=False)).stdout
    assert "inferred from source lines and lifetimes" in text
    assert "guessed" not in report(tonnage, snapshot()).stdout


def test_top_lists_holders(tonnage, snapshot):
    text = report(tonnage, snapshot(), "--top", "2").stdout.partition("The largest holders\n")[2]
    assert [line.split()[0] for line in text.splitlines()[:3]] == ["400.0", "300.0"]


# ---- moments ----

def test_a_moment_by_its_time(tonnage, snapshot):
    path = snapshot()
    assert as_json(tonnage, path, "--at", "0.00001")["moment"]["allocated_bytes"] == 400 * MIB
    assert as_json(tonnage, path, "--at", "0")["moment"]["allocated_bytes"] == 0
    assert as_json(tonnage, path, "--at", "end")["moment"]["allocated_bytes"] == 864 * MIB


@pytest.mark.parametrize("words", [["--at", "noon"], ["--at", "oom"], ["--device", "3"], ["--at", "-1"], ["--top", "0"],
                                   ["--json", "-", "--csv", "-"], ["--nonsense"], ["/nonexistent", "b"]])  # fmt: skip
def test_wrong_usage(tonnage, snapshot, words):
    done = report(tonnage, snapshot(), *words, status=2)
    assert re.fullmatch(r"tonnage: .+\n", done.stderr) and done.stdout == ""


def test_inputs_that_are_none(tonnage, snapshot):
    for content in b"", b"no pickle", b"{}", b'{"schema": "tonnage.gpus/1"}', b'{"schema"':
        path = tonnage.cwd / "wrong"
        path.write_bytes(content)
        done = report(tonnage, path, status=2)
        assert re.fullmatch(r"tonnage: .+\n", done.stderr)


def test_a_full_disk_is_our_failure(tonnage, snapshot):
    assert report(tonnage, snapshot(), "--csv", "/dev/full", status=125).stderr.startswith("tonnage: ")


def test_the_input_is_not_written_over(tonnage, snapshot):
    path = snapshot()
    before = path.read_bytes()
    report(tonnage, path, "--csv", path, status=2)
    assert path.read_bytes() == before


def test_packed_input(tonnage, snapshot):
    path = snapshot()
    packed = tonnage.cwd / "a.pickle.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    first, again = as_json(tonnage, path), as_json(tonnage, packed)
    first["input"]["file"] = again["input"]["file"] = ""
    assert first == again


# ---- JSON ----

@pytest.mark.parametrize("words", [[], ["--at", "end"], ["--redact"], ["--top", "1"]])
@pytest.mark.parametrize("oom", [None, 200 * MIB])
def test_json_keeps_its_schema(tonnage, snapshot, valid, words, oom):
    other = snapshot(HOLDINGS[:2], "b.pickle")
    document = as_json(tonnage, snapshot(oom=oom), "--diff", other, *words)
    valid(document)
    assert (document["out_of_memory"] is not None) == (oom is not None)


def test_figures_agree(tonnage, snapshot):
    document = as_json(tonnage, snapshot())
    parts = {name: size for name, size in document["at_peak"]["by_category"].items() if size}
    assert parts == {"parameters": 400 * MIB, "activations": 400 * MIB, "temporaries": 64 * MIB, "cached": 160 * MIB}
    assert sum(site["bytes"] for site in document["sites"]) == 864 * MIB
    (segment,) = document["segments"]
    assert (segment["live_bytes"], segment["free_bytes"], segment["live_blocks"]) == (864 * MIB, 160 * MIB, 4)
    assert segment["pinned_by"]["at"]["line"] == 10
    line = document["timeline"]
    for index, reserved in enumerate(line["reserved_bytes"]):
        assert sum(column[index] for column in line["by_category"].values()) == reserved
    assert line["allocated_bytes"] == [0, 0, 400 * MIB, 700 * MIB, 800 * MIB, 864 * MIB]


# ---- other formats ----

def folded(text):
    """{stack: bytes} as flame graph tools read it."""
    rows = {}
    for line in text.splitlines():
        stack, size = re.fullmatch(r"(.+) (\d+)", line).groups()
        assert stack not in rows
        rows[tuple(stack.split(";"))] = int(size)
    return rows


def test_folded(tonnage, snapshot):
    rows = folded(report(tonnage, snapshot(), "--folded", "-").stdout)
    assert rows == {
        ("forward (model.py:10)", "[parameters]"): 400 * MIB,
        ("forward (model.py:20)", "[activations]"): 300 * MIB,
        ("forward (model.py:21)", "[activations]"): 100 * MIB,
        ("forward (model.py:30)", "[temporaries]"): 64 * MIB,
    }


def test_csv_in_sqlite(tonnage, snapshot):
    text = report(tonnage, snapshot(), "--csv", "-").stdout
    head, *rows = csv.reader(io.StringIO(text))
    with sqlite3.connect(":memory:") as base:
        base.execute(f"create table blocks ({', '.join(head)})")
        base.executemany(f"insert into blocks values ({', '.join('?' * len(head))})", rows)
        found = base.execute("select category, sum(bytes) from blocks where alive = '1' group by 1 order by 1").fetchall()
    assert found == [("activations", 400 * MIB), ("parameters", 400 * MIB), ("temporaries", 64 * MIB)]


def test_csv_survives_quotes(tonnage):
    record = fake_record.snapshot(HOLDINGS[:1], RESERVED)
    for frame in record["device_traces"][0][1]["frames"] + record["segments"][0]["blocks"][0]["frames"]:
        frame["filename"], frame["name"] = '/x/a "b",\nc.py', "f,g"
    path = tonnage.cwd / "quotes.pickle"
    path.write_bytes(pickle.dumps(record))
    done = report(tonnage, path, "--csv", tonnage.cwd / "out.csv")
    with open(tonnage.cwd / "out.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["file"], row["function"]) == ('/x/a "b",\nc.py', "f,g"), done.stderr


def test_perfetto_json(tonnage, snapshot):
    trace = json.loads(report(tonnage, snapshot(oom=200 * MIB), "--perfetto", "-").stdout)["traceEvents"]
    last = {event["name"]: event["args"]["bytes"] for event in trace if event["ph"] == "C"}
    assert (last["allocated"], last["reserved"], last["parameters"]) == (864 * MIB, RESERVED, 400 * MIB)
    assert [event["args"]["requested_bytes"] for event in trace if event["ph"] == "i"] == [200 * MIB]
    assert [event["name"] for event in trace if event["ph"] == "X"] == ["forward"]
    assert all(event.get("ts", 0) >= 0 for event in trace)


def test_perfettos_own_trace_processor_reads_it(tonnage, snapshot):
    path = tonnage.cwd / "trace.json"
    report(tonnage, snapshot(oom=200 * MIB), "--perfetto", path)
    last = {event["name"]: event["args"]["bytes"] for event in json.loads(path.read_text())["traceEvents"]
            if event["ph"] == "C"}  # fmt: skip
    with perfetto_engine.engine() as trace:
        trace.load(path.read_bytes())
        counters = {row.name: row.value for row in trace.query(
            "select t.name as name, c.value as value from counter c join counter_track t on c.track_id = t.id "
            "order by c.ts")}  # fmt: skip
        slices = [row.name for row in trace.query("select name from slice where dur > 0")]
        errors = [row.name for row in trace.query("select name from stats where severity = 'error' and value > 0")]
    assert sorted(counters.values()) == sorted(last.values()) != []
    assert slices == ["forward"] and errors == []


# ---- the page ----

@pytest.mark.parametrize("oom", [None, 200 * MIB])
def test_the_page_keeps_its_format(tonnage, snapshot, schema, oom):
    page = tonnage.cwd / "page.html"
    report(tonnage, snapshot(oom=oom), "--diff", snapshot(HOLDINGS[:2], "b.pickle"), "--html", page)
    data = page_rules.data_of(page.read_text())
    schema("page", data)
    assert {found["column"] for found in data["findings"]} <= {data["moments"][0]["column"]}
    assert data["findings"] or oom is None
    assert list(page_rules.complaints(data)) == []
    assert data["headline"]["title"].startswith("GPU 0 ran out" if oom else "The peak of GPU 0")


def test_a_page_runs_nothing_of_its_input(tonnage):
    record = fake_record.snapshot(HOLDINGS[:1], RESERVED)
    for frame in record["device_traces"][0][1]["frames"] + record["segments"][0]["blocks"][0]["frames"]:
        frame["filename"] = "/x/</script><script>alert(1)</script>.py"
    path = tonnage.cwd / "script.pickle"
    path.write_bytes(pickle.dumps(record))
    page = tonnage.cwd / "page.html"
    report(tonnage, path, "--html", page)
    assert "<script>alert" not in page.read_text()
    assert any("<script>alert(1)" in text for text in page_rules.data_of(page.read_text())["strings"])


# ---- the JSON of a run ----

@pytest.mark.parametrize("wish, words", [({"document": {}}, "Fits on"), ({}, "Undecided on")])
def test_a_run_prints_the_same_screen(tonnage, schema, valid, wish, words):
    done, document = tonnage.fake(**wish)
    schema("run", document)
    again = report(tonnage, "report.json")
    assert words in done.stderr and again.stdout == done.stderr[done.stderr.index(words):]
    valid(as_json(tonnage, "report.json"))
    page = tonnage.cwd / "page.html"
    report(tonnage, "report.json", "--html", page)
    data = page_rules.data_of(page.read_text())
    schema("page", data)
    assert list(page_rules.complaints(data)) == []


def test_a_run_has_no_stacks(tonnage):
    tonnage.fake()
    assert "--folded wants a snapshot" in report(tonnage, "report.json", "--folded", "-", status=2).stderr


# ---- comparison ----

def lines_of(document):
    return {(line["category"], (line["after_at"] or line["before_at"] or {}).get("line")):
            (line["before_bytes"], line["after_bytes"]) for line in document["comparison"]["lines"]}  # fmt: skip


def test_shifted_lines_are_the_same_lines(tonnage, snapshot):
    shifted = [(category, size, line + 7, label) for category, size, line, label in HOLDINGS]
    lines = lines_of(as_json(tonnage, snapshot(shifted, "b.pickle"), "--diff", snapshot()))
    assert lines == {("parameters", 17): (400 * MIB,) * 2, ("activations", 27): (300 * MIB,) * 2,
                     ("activations", 28): (100 * MIB,) * 2, ("temporaries", 37): (64 * MIB,) * 2}  # fmt: skip


def test_a_new_line_is_a_new_line(tonnage, snapshot):
    more = sorted([*HOLDINGS, ("activations", 32 * MIB, 15, "")], key=lambda row: row[2])
    more = [(category, size, line + (line >= 15), label) for category, size, line, label in more]
    lines = lines_of(as_json(tonnage, snapshot(more, "b.pickle"), "--diff", snapshot()))
    assert lines[("activations", 16)] == (0, 32 * MIB)
    assert lines[("activations", 21)] == (300 * MIB,) * 2 and lines[("activations", 22)] == (100 * MIB,) * 2


# ---- redaction ----

def test_no_folder_is_left(tonnage, snapshot):
    path, page = snapshot(oom=200 * MIB), tonnage.cwd / "page.html"
    outputs = [report(tonnage, path, "--redact", *words).stdout
               for words in ([], ["--json", "-"], ["--csv", "-"], ["--folded", "-"], ["--perfetto", "-"])]  # fmt: skip
    report(tonnage, path, "--redact", "--html", page)
    for text in [*outputs, page.read_text().partition("application/json")[2]]:
        assert "/x/" not in text and str(tonnage.cwd) not in text
    assert re.search(r"[0-9a-f]{8}/model\.py", outputs[1])


def test_the_columns_of_the_table_are_in_the_manual():
    manual = (ROOT / "doc/man/tonnage-report.1").read_text()
    source = pathlib.Path(ROOT / "src/report/export_csv.c").read_text()
    head = "".join(re.findall(r'"([a-z_,]+)(?:\\r\\n)?"', source[source.index("fputs(\"block") :]))
    assert [name for name in head.split(",") if f"Cm {name}" not in manual] == []
