# SPDX-License-Identifier: Apache-2.0
"""Whether a report advises what its program already does, by a rule's condition and not by eye."""


def advice_of(report):
    """The pieces of advice of a report: (id, condition, facts), as far as the report says them."""
    return (report or {}).get("advice") or []


def check_all(results):
    """Lines for advice whose own condition does not hold in the run that it was given for."""
    lines = []
    for name, result in results.items():
        for piece in advice_of((result or {}).get("report")):
            if piece.get("holds") is False:
                lines.append(f"{name}: {piece.get('id')}")
    return lines
