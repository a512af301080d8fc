# SPDX-License-Identifier: Apache-2.0
"""cmake/shell_table.cmake refuses what has no row, and stops where the names and the rows of a library disagree; the
names hold what the headers that the build has declare."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import cuda_names  # noqa: E402
import harvest_names  # noqa: E402

ROWS = "/* Comment. */\nTN_ANSWER(blasCreate)\nTN_QUIET(blasTrace)\n"
NAMES = "# Comment.\nblasCopy\nblasCreate\nblasMalloc null\nblasName null\nblasTrace\n"


def make_table(tmp_path, rows, names):
    """(what the script did, the table that it wrote or None)"""
    folder = tmp_path / "blas"
    folder.mkdir()
    (folder / "blas.def").write_text(rows)
    (folder / "blas.names").write_text(names)
    return run_script(folder, tmp_path / "table.def")


def run_script(folder, output):
    done = subprocess.run(["cmake", "-D", "FOLDER=%s" % folder, "-D", "OUTPUT=%s" % output, "-P",
                           ROOT / "cmake/shell_table.cmake"], capture_output=True, text=True, check=False)
    return done, output.read_text() if output.exists() else None


def test_a_name_without_a_row_is_refused(tmp_path):
    done, table = make_table(tmp_path, ROWS + "TN_ANSWER(blasName)\n", NAMES)
    assert done.returncode == 0, done.stderr
    assert [line for line in table.splitlines() if line.startswith("TN_")] == [
        "TN_REFUSE(blasCopy)", "TN_ANSWER(blasCreate)", "TN_REFUSE_NULL(blasMalloc)", "TN_ANSWER(blasName)",
        "TN_QUIET(blasTrace)"]


@pytest.mark.parametrize("rows, names, said", [
    (ROWS + "TN_ANSWER(blasInvented)\n", NAMES, "blasInvented is no function of blas.names"),
    (ROWS + "TN_COMPUTE(blasCreate)\n", NAMES, "blasCreate has two rows"),
    (ROWS + "TN_REFUSE(blasCopy)\n", NAMES, "blasCopy is refused by having no row"),
    (ROWS + "TN_REFUSE_NULL(blasMalloc)\n", NAMES, "blasMalloc is refused by having no row"),
    (ROWS + "TN_ANSWER blasCopy\n", NAMES, "cannot read TN_ANSWER blasCopy"),
    (ROWS, NAMES + "blasTrace\n", "blasTrace stands twice or behind its place"),
    (ROWS, NAMES + "blasAxpy\n", "blasAxpy stands twice or behind its place"),
    (ROWS, NAMES + "blasZ pointer\n", "cannot read blasZ pointer"),
])
def test_names_and_rows_that_disagree_stop_the_build(tmp_path, rows, names, said):
    done, table = make_table(tmp_path, rows, names)
    assert done.returncode != 0 and table is None
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize("folder", cuda_names.FOLDERS)
def test_the_tools_read_the_table_that_the_build_makes(tmp_path, folder):
    done, table = run_script(cuda_names.VGPU / folder, tmp_path / "table.def")
    assert done.returncode == 0, done.stderr
    assert "".join("%s(%s)\n" % (verdict, name) for name, verdict in cuda_names.read_table(folder).items()) == \
        table.split("\n", 1)[1]


def test_the_names_hold_what_the_headers_of_the_build_declare():
    declared = harvest_names.harvest_headers([ROOT / "build/headers"])
    for folder in ("cudart", "driver"):
        assert len(declared[folder]) > 400, "build/headers lacks headers: run tools/fetch_headers"
        listed = cuda_names.read_names(folder)
        assert declared[folder].keys() - listed.keys() == set()
        assert {name for name, pointer in declared[folder].items() if pointer and not listed[name]} == set()


def test_a_harvest_adds_names_and_what_it_read(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda_names, "VGPU", tmp_path)
    (tmp_path / "nccl").mkdir()
    assert harvest_names.write_names("nccl", {"ncclSend": False, "ncclMalloc": True}, {"nvidia-nccl 2"}) == 2
    assert harvest_names.write_names("nccl", {"ncclRecv": None, "ncclSend": None}, {"nvidia-nccl 1"}) == 1
    assert [line for line in (tmp_path / "nccl/nccl.names").read_text().splitlines() if line[0] != "#" or "nvidia-" in line] \
        == ["#   nvidia-nccl 1", "#   nvidia-nccl 2", "ncclMalloc null", "ncclRecv", "ncclSend"]
