# SPDX-License-Identifier: Apache-2.0
"""Options of the program's own. The driver writes those of the command line onto it, so that a trial is the line that a person
would run; here it is seen that the program was given them. Those of the environment and of configuration files are set here. What
they did is told by pace.py."""

import os
import sys

from . import config_files, constants, held_back, library_calls, table
from .option import ENVIRONMENT, FILE


def _is_helper():
    """True in a process that multiprocessing has started anew, with a command line of its own: a worker, what tracks resources."""
    words = sys.orig_argv
    return any(words[at] == "-c" and words[at + 1].startswith("from multiprocessing.") for at in range(len(words) - 1))


def install(change):
    """value: the words, as in "--batch-size 2 file:conf.yaml:train.accumulate=4 env:LENGTH=512"."""
    typed, variables, files = sorted_words(change.value or "")
    given = set(sys.argv).union(*(word.partition("=")[::2] for word in sys.argv))  # --batch-size=2 is the two words, too
    if _is_helper():
        return
    if not typed + list(variables) + list(files) or not given.issuperset(typed):
        change.cannot("it has to stand on the program's command line")
        return
    if change.id == "option_batch":
        change.results = table.ROUNDING  # the survey knows whether it is the batch of an update: its promise is the weaker one then
    os.environ.update(variables)
    config_files.install(change, {path: values for path, values in files.items() if not path.endswith(".py")})
    for path, values in files.items():
        if path.endswith(".py"):
            arguments = {key: value for key, value in values.items() if "." in key}
            numbers = {key: value for key, value in values.items() if key not in arguments}
            for edit, wanted in ((library_calls.edit, arguments), (constants.edit, numbers)):
                if wanted:
                    edit(change, path, wanted)
    change.how = _how(typed, variables, files)
    if change.id == "option_accumulate":
        held_back.watch_what_sees_pieces(change)  # which says why it is another training
    if typed or variables:
        change.note(None, change.value)
        change.effect()


def sorted_words(text):
    """(words of the command line, {variable: value}, {path: {key: value}})."""
    typed, variables, files = [], {}, {}
    for word in text.split():
        if word.startswith(ENVIRONMENT):
            name, _, value = word[len(ENVIRONMENT):].partition("=")
            variables[name] = value
        elif word.startswith(FILE):
            path, _, rest = word[len(FILE):].partition(":")
            key, _, value = rest.partition("=")
            files.setdefault(path, {})[key] = value
        else:
            typed.append(word)
    return typed, variables, files


def _how(typed, variables, files):
    words = ["%s=%s" % pair for pair in variables.items()]
    parts = []
    if typed:
        parts.append("run the program with %s" % " ".join(typed))
    if words:
        parts.append("set %s in its environment" % " ".join(words))
    for path, values in files.items():
        parts.append("in %s set %s" % (path, " and ".join("%s to %s" % pair for pair in values.items())))
    text = "; ".join(parts) + "."
    return text[0].upper() + text[1:]
