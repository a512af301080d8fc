# SPDX-License-Identifier: Apache-2.0
"""Exceptions that tell of one in another process, whose traceback is their text: of torch.multiprocessing.spawn, a loader's worker, a pool."""

import re

from . import origin

_BEGINS = "Traceback (most recent call last):"
_PLACE = re.compile(r'^ *File "(.+)", line (\d+), in (.+)$')


def first(text):
    """(message, place) of the exception that a text tells of: its first words and the last line, which names the exception; the user's
    innermost line, or None. None where the text is no traceback."""
    lines = text.strip().splitlines()
    traceback = next((number for number, line in enumerate(lines) if line.strip().endswith(_BEGINS)), None)
    if traceback is None:
        return None
    rest = lines[traceback + 1:]
    places = [found.groups() for found in map(_PLACE.match, rest) if found]
    named = next((line.strip() for line in rest if line[:1].strip() and not line.startswith(("During handling", "The above exception"))), None)
    if named is None:
        return None
    words = next((line.strip(" -:.") for line in lines[:traceback] if line.strip(" -:.")), "")
    user = next((place for place in reversed(places) if origin.is_users(place[0])), None)
    place = {"file": origin.absolute(user[0]), "line": int(user[1]), "function": user[2]} if user else None
    return (words + ": " + named if words else named), place
