# SPDX-License-Identifier: Apache-2.0
"""What an earlier training left in circles of references is collected before the next one: gc.collect() where it begins.

In the text: at the top of the outermost loop, else of the function, that makes an optimizer.
"""

import ast

from . import arguments, code, unbind_trainings, wrap


def edit(change, source):
    """Looks at each optimizer of one file."""
    done = set()
    for call in code.optimizers(source):
        where = unbind_trainings._outermost(source, call) or source.scope(call)
        if isinstance(where, ast.Module) or where in done:
            continue
        done.add(where)
        first = where.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(where.body) > 1:
            first = where.body[1]
        edits = change.edits(source)
        code.need_import(edits, "gc")
        edits.insert_before(first, "gc.collect()")
        change.note(wrap.place_of(source, first), "what is over is collected")
        change.effect()
        arguments.say(change, "Call gc.collect() before the next training begins (Optuna: study.optimize(..., gc_after_trial=True)).")
