# SPDX-License-Identifier: Apache-2.0
"""What a report of `tonnage run` says of each moment that it tells of: do the categories add up to what the card held,
and how much of the live tensors has a line of the program? For tests and benches alike."""

LIVE = ("parameters", "gradients", "optimizer_state", "activations", "inputs", "temporaries", "workspaces", "gathered",
        "communication")


def moments_of(report):
    """Every moment that a report tells of, with the bytes that the card held then."""
    peak, oom = report.get("at_peak"), report.get("out_of_memory")
    if peak is not None:
        yield peak, report["peak"]["device_bytes"]
    if oom is not None and oom["requested_bytes"] > oom["free_bytes"]:
        yield oom, report["gpu"]["total_bytes"] - oom["free_bytes"]


def adds_up(moment, held):
    """True when the categories of a moment are what the card held, to the byte."""
    parts = moment["by_category"]
    return parts is not None and sum(parts.values()) == held and min(parts.values()) >= 0


def named_share(moment):
    """The share of the bytes of live tensors that has a line of the program; 1.0 where nothing lives."""
    total = sum(moment["by_category"][name] for name in LIVE)
    named = sum(row["bytes"] for row in moment["holders"] if row["category"] in LIVE and row["file"])
    return named / total if total else 1.0


def check(reports):
    """(every moment of these adds up, the least share that is named)."""
    moments = [each for report in reports for each in moments_of(report)]
    right = bool(moments) and all(adds_up(*each) for each in moments)
    return right, min((named_share(moment) for moment, _ in moments), default=0.0) if right else 0.0
