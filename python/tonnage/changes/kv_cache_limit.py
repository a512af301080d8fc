# SPDX-License-Identifier: Apache-2.0
"""A generation of at most so many new tokens: the cache of keys and values grows with each."""

from . import arguments, code, wrap

_HOW = "Call generate(..., max_new_tokens=%s): each new token costs keys and values in every layer."


def edit(change, source):
    """Sets the argument at each call of generate()."""
    if not (change.value or "").isdigit() or int(change.value) < 1:
        change.cannot("needs a number of tokens: kv_cache_limit=256")
        return
    for call in code.calls(source, "generate"):
        code.set_keyword(change.edits(source), call, "max_new_tokens", change.value)
        change.note(wrap.place_of(source, call), "at most %s new tokens" % change.value)
        change.effect()
        arguments.say(change, _HOW % change.value)
