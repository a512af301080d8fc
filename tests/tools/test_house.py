# SPDX-License-Identifier: Apache-2.0
"""tools/house.py measures what it says, and the house as it stands keeps what was reached."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import house  # noqa: E402


def test_a_circle_is_found_and_a_chain_is_none():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"g"}, "g": {"f"}}
    assert house.strongly_connected(graph) == [["a", "b", "c"], ["f", "g"]]


def test_a_copy_is_six_lines_to_the_letter(tmp_path):
    lines = [f"first[{number}] = second({number});" for number in range(7)]
    folder = tmp_path / "src/room"
    folder.mkdir(parents=True)
    (folder / "one.c").write_text("\n".join(["int a;", *lines, "int b;"]))
    (folder / "two.c").write_text("\n".join(["#include <x.h>", "int c;", *(line + "\n\n/* said */" for line in lines), "int d;"]))
    (folder / "other.c").write_text("\n".join(line.replace("second", "third") for line in lines))
    (folder / "short.c").write_text("\n".join(lines[:5]))
    assert house.copies(tmp_path) == ["src/room/one.c:2 src/room/two.c:3 7 lines"]


def test_calls_of_realloc_and_looks_into_json_are_counted(tmp_path):
    for room in ("search", "base"):
        (tmp_path / "src" / room).mkdir(parents=True)
    (tmp_path / "src/search/a.c").write_text('x = realloc(x, 3); y = reallocarray(y, 2, 2); json_object_get(o, "a"); tn__json_read(o);')
    (tmp_path / "src/base/array.c").write_text("realloc(x, 1);")
    assert house.growing_by_hand(tmp_path) == {"src/search/a.c": 2}
    assert house.json_accesses(tmp_path, ("search", "base")) == {"src/search/a.c": 1}


@pytest.mark.skipif(not any((ROOT / "build/release").rglob("*.c.o")), reason="needs the release build")
def test_the_house_stays_as_it_was_built():
    said = subprocess.run([sys.executable, ROOT / "tools/house.py", "--json"], capture_output=True, text=True, check=True).stdout
    now = json.loads(said)
    assert (now["circles_c"], now["circles_guest"]) == ([], [])
    assert (now["globals"], now["refused_rows"], now["json_accesses_in_search"]) == (0, 0, {})
    assert set(now["json_accesses_in_supervise"]) <= {"src/supervise/guest_file.c", "src/supervise/guest_take.c"}
