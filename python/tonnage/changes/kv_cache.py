# SPDX-License-Identifier: Apache-2.0
"""Keys and values of a generation in another kind of cache of transformers: `offloaded` keeps one layer's on
the device."""

from . import arguments, code, wrap

_KINDS = ("offloaded", "quantized", "offloaded_static")
_HOW = 'Call generate(..., cache_implementation="%s").'


def edit(change, source):
    """Gives the argument to each call of generate()."""
    kind = change.value or "offloaded"
    if kind not in _KINDS:
        change.cannot("knows %s only" % ", ".join(_KINDS))
        return
    for call in code.calls(source, "generate"):
        if code.keyword(call, "past_key_values") is None:
            code.set_keyword(change.edits(source), call, "cache_implementation", '"%s"' % kind)
            change.note(wrap.place_of(source, call), "generate() with the cache %s" % kind)
            change.effect()
            arguments.say(change, _HOW % kind)
    if kind == "quantized":
        change.weaken("different_training")
