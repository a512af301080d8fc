# SPDX-License-Identifier: Apache-2.0
"""--host without PyTorch: usage, verdict, text read back, and nothing of it on Linux."""

import pytest

MIB = 1 << 20


@pytest.mark.parametrize("options, said", [
    (["--host", "macos"], "--host is linux, windows or wsl, not \"macos\""),
    (["--host"], "--host needs a value"),
    (["--sysmem-fallback", "forbid"], "--sysmem-fallback goes with --host windows or wsl"),
    (["--host", "windows", "--sysmem-fallback", "never"], "--sysmem-fallback is allow or forbid"),
    (["--host", "windows", "--memory", "512MiB"], "cannot hold the whole card"),
])  # fmt: skip
def test_wrong_usage(tonnage, options, said):
    done = tonnage("run", "--gpu=rtx3060", *options, *([] if options == ["--host"] else ["--", "true"]))
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_linux_says_nothing_of_it(tonnage, schema):
    done, report = tonnage.fake("--gpu=rtx3060", "--host=linux", take=[["forward", 20 * MIB]])
    schema("run", report)
    assert done.returncode == 0 and report["system"] is None and "desktop" not in done.stderr


def test_it_spills(tonnage, schema):
    done, report = tonnage.fake("--gpu=rtx3060", "--host=windows", take=[["forward", 13000 * MIB]])
    schema("run", report)
    assert done.returncode == 10 and (report["verdict"], report["exit_status"]) == ("spills", 10), done.stderr
    assert report["system"]["spilled_bytes"] == report["peak"]["device_bytes"] - report["gpu"]["total_bytes"]
    again = tonnage("report", "report.json", "--text")
    assert again.stdout == done.stderr[done.stderr.index("Does not fit on NVIDIA"):]
