# SPDX-License-Identifier: Apache-2.0
"""Calls in the program's text that make an optimizer of torch, with other arguments or of another kind."""

from . import arguments, code, wrap


def add(change, source, kinds, name, text, how):
    """Gives an argument to every optimizer of these kinds that a file makes."""
    for call in code.optimizers(source, kinds):
        set_one(change, source, call, name, text, how)


def set_one(change, source, call, name, text, how, position=None):
    """Gives an argument to one of them."""
    code.set_keyword(change.edits(source), call, name, text, position)
    done(change, source, call, "%s with %s=%s" % (code.last(call.func), name, text), how)


def replace(change, source, call, kind, keep, how):
    """Makes one of another kind, with the arguments of these names."""
    first = source.of(call.args[0]) if call.args else source.of(code.keyword(call, "params").value)
    words = [first]
    for index, name in enumerate(("lr", "betas", "eps", "weight_decay"), 1):
        word = code.keyword(call, name)
        value = word.value if word is not None else call.args[index] if len(call.args) > index else None
        if value is not None and name in keep:
            words.append("%s=%s" % (name, source.of(value)))
    change.edits(source).replace(call, "%s(%s)" % (kind, ", ".join(words)))
    done(change, source, call, "%s becomes %s" % (code.last(call.func), kind), how)


def done(change, source, call, what, how):
    """Notes it."""
    change.note(wrap.place_of(source, call), what)
    change.effect()
    arguments.say(change, how)
