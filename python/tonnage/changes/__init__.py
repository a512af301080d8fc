# SPDX-License-Identifier: Apache-2.0
"""The changes that `tonnage fix` tries, applied inside the user's unmodified program. Standard library only.

    table     all changes: name, needs, promise, conflicts, values, cost, savings; C's table is made of it
    spec      TONNAGE_CHANGES, read
    results   what each change did and where, told in <run>/changes/<pid>.json
    source    a source file and edits of it; patches
    code      what can be read in a program's text
    patched   a patch that was printed, tried as it stands
    rewrite   runs the program from changed source, with its own file names and line numbers; cells: so the cells of a notebook, whose
              diff notebook makes
    accumulate a batch in pieces, with what moves or counts with each batch: held_back, pieces, split, turns, zeroing
    hooks     what happens in torch: batches, backward passes, updates, calls of modules
    arguments arguments of transformers' and Lightning's trainers
    options   what a program declares for its command line (parsers: through other libraries; option: one of them); config_files:
              what files hold that it names; environment: variables that it reads; library_calls: what its text hands to a
              library's trainer; constants: numbers at the top of its modules; meaning: what each is for; switches: changes made of them
    pace      what each update was made of, to hold changes to what they promise (passes: its gradients)
    survey    facts of the program that say which changes can be tried

and one file for each change. One with `edit(change, source)` edits the program's text before it runs, so that its
patch is what was tried; one with `install(change)` acts while it runs and makes the patch from the places it met.
Loaded by the guest hook, under the name _tonnage_changes, when TONNAGE_CHANGES is set (doc/design/0009-changes.md).
"""

import os

_started = False


def start(text):
    """Applies the changes that a text asks for. Once in a process; torch may be imported already."""
    global _started
    if _started:
        return
    _started = True
    from . import pace, patched, results, rewrite, spec

    asked = spec.parse(text)
    changes = list(asked)
    if os.environ.get("TONNAGE_PATCH"):
        patched.add_to(changes, os.environ["TONNAGE_PATCH"])
    results.start(changes)
    for change in asked:
        if change.why_not is None:
            _install(change)
    pace.install(results.Change("pace", None, None))
    rewrite.install()


def _install(change):
    from . import rewrite, table

    try:
        module = __import__("%s.%s" % (__name__, table.module_of(change.id)), fromlist=["install"])
        if hasattr(module, "edit"):
            rewrite.add(change, module.edit)
        if hasattr(module, "install"):
            change.acts = True
            module.install(change)
    except Exception as error:
        change.broke(error)
