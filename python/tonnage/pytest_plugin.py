# SPDX-License-Identifier: Apache-2.0
"""Tests that must fit a card, or less of it: pytest's plugin (doc/design/0011-gate.md).

    @pytest.mark.tonnage(gpu="rtx3060", budget="6GiB")
    def test_training_step(): ...

A marked test runs on a virtual GPU, so no machine with a GPU is needed. By the time that pytest knows its tests, torch
may have been imported, and a process has one card: so this pytest (the outer one) runs itself again under
`tonnage run`, once for each card and each 48 tests (the inner ones). An inner pytest runs only marked tests of its
card, each in a region of its own, and leaves their reports; the outer one passes them on as if it had run them, and
fails those whose region went above the budget. Tests without the marker run as ever.

Inside a run (somebody called `tonnage run -- pytest`) marked tests run where they are, and budgets are not checked.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

import pytest

from tonnage import __version__

_WISH = "TONNAGE_PYTEST"  # in the environment of an inner pytest: the file that says what it is for
_MOST_TESTS = 48  # of one inner run: the ledger has 64 regions, and the phases between tests take some
_MOST_HOLDERS = 5
_TAIL = 30  # lines
_UNITS = {"": 0, "B": 0, "K": 10, "KIB": 10, "M": 20, "MIB": 20, "G": 30, "GIB": 30, "T": 40, "TIB": 40}
_MIB, _GIB = 1 << 20, 1 << 30


def pytest_addoption(parser):
    group = parser.getgroup("tonnage")
    group.addoption("--tonnage-markdown", metavar="FILE", help="write the peaks of marked tests as Markdown, for the summary of a CI job")
    group.addoption("--tonnage-github", metavar="FILE", help="write what is over its budget as annotations of a GitHub workflow")
    group.addoption(
        "--tonnage-gpu", metavar="NAME", default="auto",
        help="the card of tests marked `tonnage` that name none: a name of `tonnage gpus`; auto: as for `tonnage run`")  # fmt: skip


def pytest_configure(config):
    config.addinivalue_line("markers", "tonnage(gpu=None, budget=None): run the test on a virtual GPU of this name; it fails "
                                       "when the card holds more than the budget while it runs")  # fmt: skip
    wish = os.environ.pop(_WISH, None)  # not for what the tests start
    if wish is not None:
        config.pluginmanager.register(_Inner(config, wish), "tonnage-inner")
    elif "TONNAGE_RUN" not in os.environ:
        config.pluginmanager.register(_Outer(config), "tonnage-outer")
        if not hasattr(config, "workerinput"):  # the tests of pytest-xdist's workers are reported here, too
            config.pluginmanager.register(_Summary(config), "tonnage-summary")


def pytest_report_header(config):
    if "TONNAGE_RUN" in os.environ and not config.pluginmanager.hasplugin("tonnage-inner"):
        return "tonnage: inside a run already: marked tests run here, and their budgets are not checked"
    return None


# ---- what the marker asks for ----


def _size(text):
    """Bytes of "6GiB", "500MiB" or a plain number, as the command reads them; None for anything else."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)([a-z]*)", str(text), re.IGNORECASE)
    shift = _UNITS.get(found.group(2).upper()) if found else None
    return int(float(found.group(1)) * (1 << shift)) if shift is not None else None


def _limits(item, default):
    """(card, budget in bytes or None) of a marked test; None of one without the marker."""
    marker = item.get_closest_marker("tonnage")
    if marker is None:
        return None
    wish = dict(marker.kwargs)
    gpu, budget = wish.pop("gpu", None) or default, wish.pop("budget", None)
    if marker.args or wish:
        raise pytest.UsageError("%s: the marker tonnage takes gpu= and budget=, and nothing else" % item.nodeid)
    if gpu == "real":
        raise pytest.UsageError("%s: only a virtual GPU tells the peak of each test; real is none" % item.nodeid)
    size = _size(budget) if budget is not None else None
    if budget is not None and not size:
        raise pytest.UsageError("%s: budget=%r is not a size: write it as 6GiB or 500MiB" % (item.nodeid, budget))
    return gpu, size


# ---- the inner pytest ----


class _Inner:
    """Runs the tests that are asked for, each in its region, and leaves what became of them."""

    def __init__(self, config, wish):
        self.config = config
        with open(wish) as file:
            found = json.load(file)
        self.folder, self.numbers = found["folder"], found["tests"]
        try:
            from _tonnage_guest import regions
        except ImportError:  # python -I and the like: no hook
            regions = None
        self.regions = regions

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid in self.numbers]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        number = self.numbers[item.nodeid]
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            vars(sys).pop(name, None)  # a failed test's frames, with its tensors
        file, line, _ = item.reportinfo()
        if self.regions is not None:
            place = {"file": os.fspath(file), "line": (line or 0) + 1, "function": item.name}
            self.regions.begin("%d %s" % (number, item.name), place)
        yield
        if self.regions is not None:
            self.regions.end(os.path.join(self.folder, "%d.pickle" % number))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        with open(os.path.join(self.folder, "reports"), "a") as file:
            file.write(json.dumps({"nodeid": report.nodeid, "report": data}, default=str) + "\n")


# ---- the outer pytest ----


class _Outer:
    """Has marked tests run by inner pytests, and passes on what they report."""

    def __init__(self, config):
        self.config = config
        self.limits = {}  # nodeid -> (card, budget), in the order of the tests
        self.reports = {}  # nodeid -> its reports, of tests that were run and not passed on yet
        self.command = self.output = self.temporary = None
        self.peaks = []  # (nodeid, card, peak, budget)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        found = ((item.nodeid, _limits(item, self.config.getoption("tonnage_gpu"))) for item in session.items)
        self.limits = {nodeid: limits for nodeid, limits in found if limits is not None}
        if self.limits and not self.config.option.collectonly:
            self.command = _command()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if item.nodeid not in self.limits:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if item.nodeid not in self.reports:
            self._run(*self._batch(item.nodeid))
        reports = self.reports.pop(item.nodeid, [])
        if not reports or reports[-1].when != "teardown":
            reports.append(self._no_report(item))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        _tear_down(item, nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_terminal_summary(self, terminalreporter):
        if not self.peaks or terminalreporter.verbosity < 1:
            return
        terminalreporter.section("memory of marked tests", sep="-")
        for nodeid, gpu, peak, budget in self.peaks:
            of = " of %s" % _bytes(budget) if budget is not None else ""
            terminalreporter.line("%s%s on %s  %s" % (_bytes(peak), of, gpu, nodeid))

    def pytest_unconfigure(self):
        if self.temporary is not None:
            self.temporary.cleanup()

    def _batch(self, nodeid):
        """The card of a test, and the tests that are run with it: those that follow on the same card."""
        gpu = self.limits[nodeid][0]
        if hasattr(self.config, "workerinput"):  # pytest-xdist: who runs the others is not known
            return gpu, [nodeid]
        nodeids = [other for other, limits in self.limits.items() if limits[0] == gpu]
        return gpu, nodeids[nodeids.index(nodeid):][:_MOST_TESTS]

    def _run(self, gpu, nodeids):
        if self.temporary is None:
            self.temporary = tempfile.TemporaryDirectory(prefix="tonnage-pytest-")
        folder = os.path.realpath(tempfile.mkdtemp(dir=self.temporary.name))
        numbers = {nodeid: number for number, nodeid in enumerate(nodeids, 1)}
        wish, result = os.path.join(folder, "wish"), os.path.join(folder, "run.json")
        with open(wish, "w") as file:
            json.dump({"folder": folder, "tests": numbers}, file)
        self.output = os.path.join(folder, "output")
        self._start(gpu, wish, result)
        self._collect(folder, result, numbers)

    def _start(self, gpu, wish, result):
        """Waits for an inner pytest. Its files go with our folder."""
        command = [self.command, "run", "--gpu", gpu, "--steps", "all", "--quiet", "--json", result, "--",
                   sys.executable, "-m", "pytest", *self._arguments()]  # fmt: skip
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST_")}
        environment.pop("PYTEST_CURRENT_TEST", None)
        environment.update({_WISH: wish, "TMPDIR": os.path.dirname(wish)})
        with open(self.output, "wb") as output:
            shown = self.config.getoption("capture") == "no"
            subprocess.run(command, cwd=str(self.config.invocation_params.dir), env=environment, stdin=subprocess.DEVNULL,
                           stdout=None if shown else output, stderr=None if shown else subprocess.STDOUT)  # fmt: skip

    def _arguments(self):
        """Those that this pytest was called with; but one process is enough."""
        if hasattr(self.config, "workerinput"):
            arguments = self.config.workerinput["mainargv"][1:]
        else:
            arguments = [os.fspath(word) for word in self.config.invocation_params.args]
        return [*arguments, "-n0"] if self.config.pluginmanager.hasplugin("xdist") else arguments

    def _collect(self, folder, result, numbers):
        """Takes in what an inner pytest left: what it wrote lies in the scratch folder of its run."""
        document = _read_json(result) or {}
        if document.get("verdict") == "undecided":
            reason = next(iter(document.get("findings") or ()), {}).get("what") or "nothing decisive was seen"
            warnings.warn(pytest.PytestWarning("tonnage: budgets of these tests prove nothing: %s" % reason), stacklevel=2)
        left = os.path.join(document.get("scratch") or "/nonexistent", folder.lstrip("/"))
        peaks = {}
        for region in document.get("regions", ()):
            number = region["name"].partition(" ")[0]
            if number.isdigit():
                peaks[int(number)] = region
        for row in _read_lines(os.path.join(left, "reports")):
            report = self.config.hook.pytest_report_from_serializable(config=self.config, data=row["report"])
            self.reports.setdefault(row["nodeid"], []).append(report)
        for nodeid, number in numbers.items():
            if number in peaks and nodeid in self.reports:
                self._judge(nodeid, peaks[number], os.path.join(left, "%d.pickle" % number))

    def _judge(self, nodeid, region, snapshot):
        """Fails a test that passed and went above its budget."""
        gpu, budget = self.limits[nodeid]
        peak = region["peak_device_bytes"]
        self.peaks.append((nodeid, gpu, peak, budget))
        over = budget is not None and peak > budget
        known = [("tonnage_peak_device_bytes", peak), ("tonnage_gpu", gpu), ("tonnage_budget_bytes", budget)]
        for report in self.reports[nodeid]:
            report.user_properties.extend(pair for pair in known if pair[1] is not None)
            if over and report.when == "call" and report.outcome == "passed" and not hasattr(report, "wasxfail"):
                document = self._report_of(snapshot)
                report.outcome = "failed"
                report.longrepr = "\n".join(self._words_of(gpu, budget, region, document))
                report.user_properties.append(("tonnage_held_by", _own_line(document)))

    def _words_of(self, gpu, budget, region, document):
        peak = region["peak_device_bytes"]
        yield "over the budget of %s on %s: %s at the peak, %s too much" % (
            _bytes(budget), gpu, _bytes(peak), _bytes(peak - budget))  # fmt: skip
        if document is None:
            yield "what held the memory is not known: PyTorch's allocator left no record of this test"
            return
        holders = document["at_peak"]["holders"][:_MOST_HOLDERS]
        reserved = document["moment"]["reserved_bytes"]
        kept = region["peak_reserved_bytes"] in (None, reserved)
        yield "most of it was held by" if kept else "at the fullest moment on record (%s reserved) most was held by" % (
            _bytes(reserved))  # fmt: skip
        for row in holders:
            yield "  %10s  %s  %s" % (_bytes(row["bytes"]), row["category"].replace("_", " "), self._place(row))

    def _report_of(self, snapshot):
        """What `tonnage report` says of the peak in a snapshot, or None."""
        done = subprocess.run([self.command, "report", "--at", "peak", "--json", "-", snapshot], capture_output=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def _place(self, row):
        if row["file"] is None:
            return row["what"] or "of no line"
        root = str(self.config.rootpath) + os.sep
        file = row["file"][len(root):] if row["file"].startswith(root) else row["file"]
        function = " %s" % row["function"] if row["function"] else ""
        return "%s%s:%s%s" % ("backward of " if row["backward"] else "", file, row["line"], function)

    def _no_report(self, item):
        """The inner pytest ended before this test did."""
        try:
            with open(self.output, errors="replace") as file:
                tail = file.read().splitlines()[-_TAIL:]
        except OSError:
            tail = []
        words = ["the run on the virtual GPU ended before this test did", *tail]
        return pytest.TestReport(nodeid=item.nodeid, location=item.location, keywords={}, outcome="failed",
                                 longrepr="\n".join(words), when="call")  # fmt: skip


def _tear_down(item, nextitem):
    """What earlier tests of this process have set up and the next one does not share; a marked one sets up nothing here."""
    call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
    if call.excinfo is not None:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)


# ---- for CI ----


class _Summary:
    """The peaks of all marked tests: a table in Markdown, and the lines that hold most of what is over its budget."""

    def __init__(self, config):
        self.config = config
        self.rows = []  # (nodeid, what is known of it, the report)

    def pytest_runtest_logreport(self, report):
        known = {name: value for name, value in report.user_properties if name.startswith("tonnage_")}
        if report.when == "call" and known:
            self.rows.append((report.nodeid, known, report))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        for option, lines in (("tonnage_markdown", self._markdown()), ("tonnage_github", self._annotations())):
            path = self.config.getoption(option)
            if path:
                with open(path, "w", encoding="utf-8") as file:
                    file.writelines("%s\n" % line for line in lines)

    def _markdown(self):
        if not self.rows:
            return
        failed = sum(report.failed for _, _, report in self.rows)
        yield "### %s %d test%s on a virtual GPU%s" % (_mark(failed), len(self.rows), "" if len(self.rows) == 1 else "s",
                                                     ", %d failed" % failed if failed else "")  # fmt: skip
        yield ""
        yield "| | Test | Card | Peak | Budget | Held by |"
        yield "|:--|:--|:--|--:|--:|:--|"
        for nodeid, known, report in self.rows:
            budget, at = known.get("tonnage_budget_bytes"), known.get("tonnage_held_by")
            yield "| %s | %s | %s | %s | %s | %s |" % (
                _mark(report.failed), _code(nodeid), known["tonnage_gpu"], _bytes(known["tonnage_peak_device_bytes"]),
                _bytes(budget) if budget is not None else "", _code("%s:%d" % (_below_root(at[0]), at[1])) if at else "")  # fmt: skip

    def _annotations(self):
        for nodeid, known, report in self.rows:
            if "tonnage_held_by" not in known:
                continue
            at = known["tonnage_held_by"]
            place = "file=%s,line=%d," % (_escaped(_below_root(at[0]), ":,"), at[1]) if at else ""
            title = "%s is over its budget" % nodeid
            yield "::error %stitle=%s::%s" % (place, _escaped(title, ":,"), _escaped(str(report.longrepr)))


def _own_line(document):
    """[file, line] of the largest holder that is not in a package; None."""
    holders = document["at_peak"]["holders"] if document is not None else ()
    for row in holders:
        if row["file"] and row["line"] and not re.search("/(site|dist)-packages/|/lib/python", row["file"]):
            return [row["file"], row["line"]]
    return None


def _below_root(path):
    root = os.path.join(os.environ.get("GITHUB_WORKSPACE") or os.getcwd(), "")
    return path[len(root):] if path.startswith(root) else path


def _escaped(text, more=""):
    """For a workflow command of GitHub."""
    return "".join("%%%02X" % ord(c) if c in "%\r\n" + more else c for c in text)


def _code(text):
    """For a cell of a table in Markdown."""
    return "`%s`" % text.replace("`", "'").replace("|", "\\|")


def _mark(failed):
    return "\u274c" if failed else "\u2705"


# ---- the command ----


def _command():
    """`tonnage`: of this Python's environment, on the PATH, or of the checkout that this file lies in."""
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(os.path.dirname(sys.executable), "tonnage")
    built = os.path.join(os.path.dirname(os.path.dirname(here)), "build", "bin", "tonnage")
    for path in (beside, shutil.which("tonnage"), built):
        if path and os.access(path, os.X_OK):
            _check_version(path)
            return path
    raise pytest.UsageError("the command tonnage is not found: neither beside this Python nor on the PATH")


def _check_version(command):
    """The plugin and the command understand each other's files only when they are of one version."""
    words = subprocess.run([command, "--version"], capture_output=True, text=True).stdout.split()
    if words[1:] != [__version__]:
        raise pytest.UsageError("%s is version %s, the plugin of pytest in this environment is of %s: install tonnage here, too" % (
            command, " ".join(words[1:]) or "unknown", __version__))  # fmt: skip


def _read_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _read_lines(path):
    """The whole lines of a file of JSON lines: whoever wrote it may have been killed."""
    try:
        with open(path) as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        if line.endswith("\n"):
            yield json.loads(line)


def _bytes(size):
    return "%.2f GiB" % (size / _GIB) if size >= _GIB else "%.1f MiB" % (size / _MIB)
