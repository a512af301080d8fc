# SPDX-License-Identifier: Apache-2.0
"""Runs a composite action's steps as GitHub's runner does: read from action.yml, in order, each `run:` by the bash that the runner
starts, with the files and variables that it sets. Steps that `uses:` another action are noted, not run."""

import dataclasses
import pathlib
import re
import subprocess
import tempfile
import types

import yaml

SHELL = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail"]  # of `shell: bash`


@dataclasses.dataclass
class Job:
    """What a job with one use of an action left behind."""

    status: int  # of the step that failed; 0
    log: str
    summary: str
    steps: list  # names of those that were run
    uses: dict  # {action: its inputs}, of steps that use another one
    outputs: dict

    @property
    def annotations(self):
        return [line for line in self.log.splitlines() if re.match("::(error|warning|notice) ", line)]


class Context(types.SimpleNamespace):
    """`inputs.name`; what is not there is empty, as in GitHub's expressions."""

    def __getattr__(self, name):
        return Context() if not name.startswith("__") else super().__getattribute__(name)

    def __str__(self):
        return "" if not vars(self) else super().__str__()

    def __eq__(self, other):
        return str(self) == str(other)


def context_of(mapping):
    return Context(**{key.replace("-", "_"): context_of(value) if isinstance(value, dict) else str(value)
                      for key, value in mapping.items()})  # fmt: skip


def evaluate(expression, contexts):
    """Names joined by dots, strings, ==, != and &&: what this action's expressions are made of."""
    names = {name: context_of(value) for name, value in contexts.items()}
    python = re.sub(r"(?<=\w)-(?=\w)", "_", expression).replace("&&", " and ")
    return eval(python, {"__builtins__": {}}, names)  # noqa: S307


def filled(text, contexts):
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: str(evaluate(found[1], contexts)), text)


def run_action(path, workspace, inputs, github, environment, handles=()):
    """The action at `path` with these inputs in a checkout at `workspace`; `github` is the context of that name, `environment` what
    earlier steps of the job have set; handles are open in each step."""
    action = yaml.safe_load(pathlib.Path(path).read_text())
    temporary = pathlib.Path(tempfile.mkdtemp(dir=environment["RUNNER_TEMP"]))
    contexts = {"github": github, "steps": {}}
    defaults = {name: filled(str(row.get("default", "")), contexts) for name, row in action["inputs"].items()}
    assert not set(inputs) - set(defaults), "no such input"
    contexts["inputs"] = {**defaults, **inputs}
    job = Job(0, "", "", [], {}, {})
    for number, step in enumerate(action["runs"]["steps"]):
        if "if" in step and not evaluate(step["if"], contexts):
            continue
        job.steps.append(step["name"])
        if "uses" in step:
            job.uses[step["uses"]] = {name: filled(str(value), contexts) for name, value in step["with"].items()}
            continue
        assert step["shell"] == "bash" and "${{" not in step["run"], "an input in a script is a hole: pass it by env"
        script, output, summary = (temporary / f"{number}.{end}" for end in ("sh", "output", "summary"))
        script.write_text(step["run"])
        output.touch()
        summary.touch()
        done = subprocess.run(
            [*SHELL, str(script)], cwd=pathlib.Path(workspace) / filled(step.get("working-directory", "."), contexts),
            env={**environment, "GITHUB_WORKSPACE": str(workspace), "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output),
                 "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_REPOSITORY": "somebody/example",
                 **{name: filled(str(value), contexts) for name, value in step.get("env", {}).items()}},
            text=True, pass_fds=handles, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)  # fmt: skip
        job.log += done.stdout
        job.summary += summary.read_text()
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        contexts["steps"][step.get("id", str(number))] = {"outputs": outputs}
        if done.returncode != 0:
            job.status = done.returncode
            break
    job.outputs = {name: filled(row["value"], contexts) for name, row in action["outputs"].items()}
    return job

