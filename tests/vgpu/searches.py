# SPDX-License-Identifier: Apache-2.0
"""`tonnage fix` and `tonnage fit` on real programs, for the tests of what they find.

Its trials may be forked from a server of the tests (../fork_servers.py). Then it is told --fresh: it starts no server of its own, and
each process that a trial wants comes from ours. Its own server is looked at by test_forks.py.
"""

import json
import os
import subprocess

import fork_servers
from conftest import AT_LAUNCH, TEMPORARY, TONNAGE, TORCHRUN


def search(name, options, program, cwd, env=None, forked=True, imports=()):
    """The finished command, and its document. options: spelled --name=value; program: Python and its words, of ranks by torchrun, too; imports: what a
    server has imported besides torch."""
    out = cwd / f"{name}.json"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TMPDIR": TEMPORARY.name, **(env or {})}
    ranks = list(program[1:3]) == TORCHRUN
    early = [variable for variable in AT_LAUNCH if ranks and variable in (env or {})]
    start = [str(TONNAGE), name, "--json", str(out), *options]
    done = None
    if forked and fork_servers.knows(options) and fork_servers.can_fork(program, env or {}, early):
        done = fork_servers.run_forked(TONNAGE, program[0], options, [*start, "--fresh", "--", *program], cwd, environment, settings=early,
                                       ranks=ranks, imports=(*fork_servers.IMPORTS, *imports), timeout=600)  # fmt: skip
    if done is None:
        done = subprocess.run([*start, "--", *program], cwd=cwd, env=environment, timeout=600, capture_output=True, text=True)
    return done, json.loads(out.read_text()) if out.exists() else {}
