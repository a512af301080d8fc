# SPDX-License-Identifier: Apache-2.0
"""The action for GitHub and the template for GitLab, by the steps that stand in their files, on a repository that is made here:
red with the line to blame, green after it is mended."""

import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import urllib.parse

import fork_servers
import github
import pytest
import yaml
from conftest import HERE, MAIN, ROOT, TONNAGE, python_of

MIB = 1 << 20
KEPT = 64 * MIB  # four layers x 4096 x 1024 numbers of 4 bytes
CODEQUALITY = {  # what GitLab's documentation asks of each entry
    "type": "array",
    "items": {
        "type": "object", "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string"}, "check_name": {"type": "string"}, "fingerprint": {"type": "string"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {"type": "object", "required": ["path", "lines"], "properties": {
                "path": {"type": "string", "pattern": r"^[^/.]"},
                "lines": {"type": "object", "required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}}}},
        },
    },
}  # fmt: skip

# A FAKE of GitHub's command line: keeps the comments of one pull request in a file, or may not write.
FAKE_GH = """#!/usr/bin/env python3
import json, os, pathlib, sys
store = pathlib.Path(os.environ["FAKE_COMMENTS"])
words = sys.argv[1:]
comments = json.loads(store.read_text()) if store.exists() else []
if "--jq" in words:
    print("\\n".join(str(i) for i, body in enumerate(comments, 1) if body.startswith(os.environ["MARKER"])))
elif os.environ["GH_TOKEN"] == "reads-only":
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
else:
    body = pathlib.Path(words[words.index("--field") + 1].removeprefix("body=@")).read_text()
    if "PATCH" in words:
        comments[int(words[words.index("PATCH") + 1].rpartition("/")[2]) - 1] = body
    else:
        assert words[1] == "repos/somebody/example/issues/7/comments", words
        comments.append(body)
    store.write_text(json.dumps(comments))
"""


class Repository:
    """A checkout, and a job that uses the action in it."""

    def __init__(self, folder):
        self.folder, self.temporary = folder / "example", folder / "runner"
        self.temporary.mkdir()
        self.folder.mkdir()
        for name in ("train.py", "blocks.py"):
            shutil.copy(HERE / "gate" / name, self.folder)
        shutil.copy(HERE / "gate/library_tests.py", self.folder / "test_library.py")
        tools = folder / "tools"
        tools.mkdir()
        (tools / "gh").write_text(FAKE_GH)
        (tools / "gh").chmod(0o755)
        self.python = python_of(MAIN)
        self.forking = tools / "tonnage"
        python = pathlib.Path(self.python).parent  # as actions/setup-python puts it on the PATH
        self.comments = folder / "comments.json"
        self.environment = {
            "PATH": f"{tools}:{TONNAGE.parent}:{python}:/usr/bin:/bin", "HOME": os.environ["HOME"], "TMPDIR": str(self.temporary),
            "RUNNER_TEMP": str(self.temporary), "FAKE_COMMENTS": str(self.comments), "LANG": "C.UTF-8", "TONNAGE_NEED": "0",
        }  # fmt: skip

    def line_of(self, file, words):
        """The line after the one that has these words in it."""
        return 2 + next(i for i, line in enumerate((self.folder / file).read_text().splitlines()) if words in line)

    def break_it(self):
        """The block keeps one tensor more; its line."""
        self.edit("blocks.py", "if KEEP_MORE:", "if True:")
        return self.line_of("blocks.py", "if True:") - 1

    def edit(self, name, old, new):
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def use(self, token="may-write", **inputs):
        """The job of a pull request."""
        inputs = {"install": "", "gpu": "rtx3060", **{name.replace("_", "-"): value for name, value in inputs.items()}}
        event = {"token": token, "event": {"pull_request": {"number": 7}}}
        return github.run_action(ROOT / "action.yml", self.folder, inputs, event, *self.forked())

    def forked(self):
        """The environment of a job whose runs are forked, and the handles that it needs."""
        self.server = None if fork_servers.is_fresh() else fork_servers.supervised(TONNAGE, self.python, ())
        if self.server is None:
            self.forking.unlink(missing_ok=True)
            return self.environment, ()
        fork_servers.write_stand_in(self.forking, TONNAGE)
        handle = self.server.channel.fileno()  # which is closed when nothing has the server any more
        return {**self.environment, "TONNAGE_FORKED_BY": str(handle)}, [handle]

    def train(self, **inputs):
        return self.use(run="python train.py", options="--steps all", baseline="peak.json", **inputs)

    def keep_baseline(self, job):
        shutil.copy(pathlib.Path(job.outputs["folder"]) / "baseline.json", self.folder / "peak.json")

    def posted(self):
        return json.loads(self.comments.read_text()) if self.comments.exists() else []


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def cells(markdown):
    """The rows of the first table, as GitHub would split them."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


# ---- a program against a baseline ----


def test_red_with_the_guilty_line_and_green_after_the_fix(repository):
    first = repository.train()
    assert first.status == 0 and first.outputs["status"] == "0", first.log
    assert "there is no peak.json yet" in first.log and len(repository.posted()) == 1
    repository.keep_baseline(first)

    line = repository.break_it() + 1
    red = repository.train()
    assert red.status == 11 and red.outputs["verdict"] == "over_baseline", red.log
    assert red.steps[-1] == "Verdict" and "Keep the report" in red.steps
    assert red.annotations[0].startswith(f"::error file=blocks.py,line={line},title=Over the baseline on NVIDIA GeForce RTX 3060 ")
    assert int(red.outputs["peak-bytes"]) - int(first.outputs["peak-bytes"]) == KEPT
    assert f"- +64.0 MiB temporaries, blocks.py:{line} forward: 64.0 MiB, was 0 B" in red.summary.splitlines()
    assert red.summary.startswith("### \u274c Over the baseline")
    [comment] = repository.posted()  # the one that was there
    assert comment == "<!-- tonnage -->\n" + red.summary

    repository.edit("blocks.py", "if True:", "if KEEP_MORE:")
    green = repository.train()
    assert green.status == 0 and green.annotations == [] and green.outputs["verdict"] == "fits", green.log
    assert green.summary.startswith("### \u2705 Fits on NVIDIA GeForce RTX 3060")
    assert "MiB, as before" in green.summary and repository.posted() == ["<!-- tonnage -->\n" + green.summary]


def test_the_table_is_that_of_the_report(repository):
    job = repository.train()
    run = json.loads((pathlib.Path(job.outputs["folder"]) / "run.json").read_text())
    head, _, *rows = cells(job.summary)
    assert head == ["At the peak", "MiB", "Share", "Where"]
    shown = {row[0]: float(row[1]) for row in rows}
    held = {name: bytes for name, bytes in run["at_peak"]["by_category"].items() if bytes >= MIB // 20}
    assert len(shown) == len(held) and abs(sum(shown.values()) * MIB - run["peak"]["device_bytes"]) < MIB
    assert shown["activations"] == round(held["activations"] / MIB, 1)
    assert next(row[3] for row in rows if row[0] == "activations").startswith("blocks.py:")


def test_what_is_kept(repository):
    job = repository.train(name="memory of training")
    kept = job.uses["actions/upload-artifact@v4"]
    assert kept["name"] == "memory of training"
    files = {path.name for path in pathlib.Path(kept["path"]).iterdir()}
    assert files >= {"run.json", "report.html", "report.md", "baseline.json"}, files
    assert repository.posted()[0].startswith("<!-- memory of training -->\n")


# ---- other verdicts ----


def test_out_of_memory_in_a_folder_of_its_own(repository):
    """Paths are below the repository's root, wherever the program was started."""
    below = repository.folder / "a, b"
    below.mkdir()
    for name in ("train.py", "blocks.py"):
        (repository.folder / name).rename(below / name)
    job = repository.use(run="python train.py", options="--memory 300MiB", working_directory="a, b")
    assert job.status == 10 and job.outputs["verdict"] == "out_of_memory", job.log
    place = json.loads((pathlib.Path(job.outputs["folder"]) / "run.json").read_text())["out_of_memory"]["at"]
    file = f"a%2C b/{pathlib.Path(place['file']).name}"
    assert job.annotations[0].startswith(f"::error file={file},line={place['line']},title=Does not fit on NVIDIA GeForce RTX 3060")
    assert "Out of memory in the " in job.annotations[0] and "%0AWhy: " in job.annotations[0]


def test_over_the_budget(repository):
    job = repository.use(run="python train.py", budget="200MiB")
    assert job.status == 11 and job.outputs["verdict"] == "over_budget"
    assert "The budget is 200.0 MiB" in job.summary and job.annotations[0].startswith("::error file=blocks.py,line=")


def test_a_program_that_fails_by_itself(repository):
    """Its own status; the words of its exception are shown as they are, and mention nobody."""
    (repository.folder / "train.py").write_text("import torch\ntorch.ones(1).cuda()\nraise ValueError('<b>@all</b> | `rm` $x$ *a*')\n")
    job = repository.use(run="python train.py")
    assert job.status == 1 and job.outputs["verdict"] == "failed", job.log
    assert r"ValueError: &lt;b\>`@`all&lt;/b\> \| \`rm\` \$x\$ \*a\*" in job.summary, job.summary
    assert job.annotations[0].startswith("::error file=train.py,line=3,title=The program failed with status 1")


def test_words_are_split_as_a_shell_does(repository):
    (repository.folder / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    job = repository.use(run="python train.py --name 'two words' \"$HOME\"", options="--steps 3")
    assert f"['--name', 'two words', '{os.environ['HOME']}']" in job.log and job.status == 12, job.log


@pytest.mark.parametrize("inputs", [{}, {"run": "python train.py", "pytest": "tests/"}])
def test_one_of_the_two(repository, inputs):
    job = repository.use(**inputs)
    assert job.status == 2 and "::error title=tonnage::give either run or pytest" in job.log
    assert job.steps[-1] == "Run"


def test_a_card_that_is_not_known(repository):
    job = repository.use(run="python train.py", gpu="voodoo")
    assert job.status == 2 and job.summary == "" and "tonnage gpus lists" in job.log and repository.posted() == []


# ---- comments ----


def test_a_token_that_may_not_write_fails_nothing(repository):
    job = repository.train(token="reads-only")
    assert job.status == 0 and "::notice title=tonnage::no comment" in job.log and repository.posted() == []


def test_no_comment_without_a_token_or_when_it_is_not_wanted(repository):
    assert "Comment" not in repository.train(token="").steps
    assert "Comment" not in repository.train(comment="false").steps and repository.posted() == []


# ---- marked tests ----


def test_marked_tests(repository):
    words = "-q -p tonnage.pytest_plugin -p no:cacheprovider -k 'test_training and not again' test_library.py"
    repository.environment["PYTHONPATH"] = str(ROOT / "python")
    green = repository.use(pytest=words)
    assert green.status == 0 and green.summary.startswith("### \u2705 1 test on a virtual GPU\n"), green.log
    [_, _, row] = cells(green.summary)
    assert row[:3] == ["\u2705", "`test_library.py::test_training`", "rtx3060"] and row[4] == "1.00 GiB"
    repository.environment["BUDGET"] = "350MiB"
    line = repository.break_it() + 1
    red = repository.use(pytest=words)
    [_, _, row] = cells(red.summary)
    assert red.status == 1 and row[0] == "\u274c" and row[5] == f"`blocks.py:{line}`", red.log
    assert red.annotations[0].startswith(f"::error file=blocks.py,line={line},title=test_library.py%3A%3Atest_training is over its budget::")


# ---- the file ----


def test_inputs_and_outputs_are_explained():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    rows = [*action["inputs"].items(), *action["outputs"].items()]
    assert all(row["description"] for _, row in rows) and action["runs"]["using"] == "composite"
    readme = (ROOT / "README.md").read_text()
    used = yaml.safe_load(readme.split("For GitHub Actions:\n\n")[1].split("\n\n")[0])
    [step] = [step for step in used["jobs"]["memory"]["steps"] if "tonnage" in step.get("uses", "")]
    assert set(step["with"]) <= set(action["inputs"])


# ---- GitLab ----


@pytest.fixture
def gitlab():
    """A server that takes notes of merge requests, as GitLab's API does, from who may write."""
    notes = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            good = self.path == "/api/v4/projects/3/merge_requests/7/notes" and self.headers["PRIVATE-TOKEN"] == "secret"
            if good:
                notes.append(dict(urllib.parse.parse_qsl(body))["body"])
            self.send_response(201 if good else 401)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.notes = notes
    yield server
    server.shutdown()


def run_template(repository, **variables):
    """The job's script as GitLab's runner starts it."""
    job = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())[".tonnage"]
    given = {**job["variables"], "TONNAGE_GATE_INSTALL": "", "CI_MERGE_REQUEST_IID": "", "TONNAGE_GATE_TOKEN": "", **variables}
    script = "set -eo pipefail\n" + "\n".join(job["script"])
    environment, handles = repository.forked()
    return subprocess.run(["bash"], input=script, cwd=repository.folder, env={**environment, **given}, text=True, pass_fds=handles,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)  # fmt: skip


def test_gitlab_red_and_green(repository, gitlab):
    import jsonschema

    kept = repository.folder / "tonnage"
    given = {"TONNAGE_GATE_RUN": "python train.py", "TONNAGE_GATE_GPU": "rtx3060", "TONNAGE_GATE_OPTIONS": "--steps all", "TONNAGE_GATE_BASELINE": "peak.json",
             "CI_API_V4_URL": f"http://127.0.0.1:{gitlab.server_port}/api/v4", "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "7",
             "TONNAGE_GATE_TOKEN": "secret"}  # fmt: skip
    first = run_template(repository, **given)
    assert first.returncode == 0 and "there is no peak.json yet" in first.stdout, first.stdout
    assert json.loads((kept / "codequality.json").read_text()) == []
    shutil.move(kept / "baseline.json", repository.folder / "peak.json")
    line = repository.break_it() + 1
    red = run_template(repository, **given)
    report = json.loads((kept / "codequality.json").read_text())
    jsonschema.validate(report, CODEQUALITY)
    assert red.returncode == 11 and report[0]["location"] == {"path": "blocks.py", "lines": {"begin": line}}, red.stdout
    assert report[0]["severity"] == "critical" and len({row["fingerprint"] for row in report}) == len(report)
    assert gitlab.notes[-1] == (kept / "report.md").read_text() and "Over the baseline" in gitlab.notes[-1]
    repository.edit("blocks.py", "if True:", "if KEEP_MORE:")
    assert run_template(repository, **{**given, "TONNAGE_GATE_TOKEN": "wrong"}).returncode == 0 and len(gitlab.notes) == 2


def test_gitlab_keeps_what_is_written():
    artifacts = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())[".tonnage"]["artifacts"]
    assert artifacts["when"] == "always" and artifacts["paths"] == ["tonnage/"]
    assert artifacts["reports"] == {"codequality": "tonnage/codequality.json"}
