# SPDX-License-Identifier: Apache-2.0
"""Causes that threads about several cards found (bench/rank_threads): the report names the card, what need not be there, and what to do."""

import tomllib

import pytest
from conftest import MAIN, ROOT

FORKED = True  # ../fork_servers.py
PROGRAM = str(ROOT / "bench/rank_threads/threads.py")
RANKS = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", PROGRAM]


def thread(tonnage, words, memory, need="0"):
    env = {"OMP_NUM_THREADS": "1", "TONNAGE_NEED": need}  # seconds
    return tonnage(MAIN, words, "--gpus=2", "--gpu=rtx4090", f"--memory={memory}", env=env)


_runs = {}  # of rows of the table: one run serves all that is asked of it


def row_of(tonnage, name):
    if name not in _runs:
        alone = name in ALONE
        _runs[name] = thread(tonnage, [PROGRAM, name] if alone else [*RANKS, name], ROWS[name]["memory"], need="200" if alone else "0")
    return _runs[name]


def found(run, name):
    return [finding for finding in run.report["findings"] if finding["id"] == name]


def test_a_rank_that_holds_a_context_of_another_ranks_card(tonnage):
    """set_device is missing: card 0 alone runs out, and it is said of which rank the context is."""
    run = thread(tonnage, [*RANKS, "contexts"], "2150MiB")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert [card["out_of_memory"] for card in run.report["cards"]] == [True, False], run.explain()
    assert found(run, "on_others_card") == run.report["findings"][:1], run.explain()  # the reason
    shown = " ".join(run.stderr.split())
    assert "Why rank 1 holds" in shown and "of card 0, which is rank 0's" in shown, run.explain()
    assert "torch.cuda.set_device(local_rank)" in shown, run.explain()


def test_ranks_on_their_own_cards_hold_nothing_of_others(tonnage):
    run = thread(tonnage, [*RANKS, "flattened"], "4GiB")
    assert run.report["ranks"] and not found(run, "on_others_card"), run.explain()


def test_what_is_out_of_memory_is_told_of_the_rank_that_it_is_told_for(tonnage):
    """Both cards run out, and the last refusal is not of the rank that the report is about: its parts are still its own."""
    run = thread(tonnage, [*RANKS, "contexts"], "1800MiB")
    held = run.report["out_of_memory"]["by_category"]
    assert held["optimizer_state"] and held["parameters"] == 16 * 2048 * 2048 * 4, run.explain()
    assert not found(run, "categories_do_not_add_up"), run.explain()  # card 0 is as full before and after rank 1's end


def test_outputs_that_data_parallel_gathers(tonnage):
    run = thread(tonnage, [PROGRAM, "gathered_maps"], "1000MiB")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert [card["out_of_memory"] for card in run.report["cards"]] == [True, False], run.explain()
    (finding,) = found(run, "gathered_outputs")
    assert finding["bytes"] == 9 * 32 << 20 and finding == run.report["findings"][0], run.explain()  # of 12 maps of 32 MiB
    assert "DataParallel gathers the outputs of all cards on card 0" in " ".join(run.stderr.split()), run.explain()


# The finding that leads where a row of bench/rank_threads/table.toml (its answer was written before it was run) was wrong once, and words of it.
LEADS = {
    "full_state": ("gathered_state", "offload_to_cpu=True"),
    "full_tensors": ("gathered_state", "cpu_offload=True"),
    "same_card": ("same_card", "ranks 0, 1 work on one card, card 0"),
    "uneven": ("uneven_cards", "card 1: 1."),
    "large_batch": ("larger_input", "8192 x 2048"),
    "gathered_outputs": ("gathered_outputs", "DataParallel gathers the outputs of all cards on card 0"),
    "caught": ("held_by_exception", "the exception holds them"),
    "one_position": ("logits", "over a vocabulary of 64000"),
    "state_only": ("optimizer_state", "1.00 GiB in all as they are sharded over 2 ranks"),
    "whole_first": ("model_too_big", "sharded before it is on the card"),
}
ALONE = {"uneven", "gathered_outputs"}  # one process with two cards
ROWS = {row["name"]: row for row in tomllib.loads((ROOT / "bench/rank_threads/table.toml").read_text())["thread"]}


# What others show, too: of one process, or of ranks with another call.
ALIKE = {"full_tensors", "large_batch", "gathered_outputs", "one_position"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in ALIKE else name for name in LEADS])
def test_what_leads(tonnage, name):
    lead, words = LEADS[name]
    run = row_of(tonnage, name)
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    first = [finding for finding in run.report["findings"] if finding["id"] != "ended_with_zero"][0]
    assert first["id"] == lead and words in " ".join(run.stderr.split()), run.explain()


def test_a_state_dict_that_has_lost_tensors_is_no_success(tonnage):
    """FSDP catches the out-of-memory while it clones, warns, and torchrun ends with 0: the verdict is not that it fits."""
    run = row_of(tonnage, "full_state")
    assert run.report["out_of_memory"]["swallowed"] and run.report["out_of_memory"]["phase"] == "save", run.explain()
    assert "Failed to clone() tensor" in " ".join(run.stderr.split()), run.explain()


def test_a_sharded_model_is_not_advised_to_be_sharded(tonnage):
    run = thread(tonnage, [*RANKS, "no_offload"], ROWS["no_offload"]["memory"])
    assert found(run, "optimizer_state") and "sharded over the ranks" not in " ".join(run.stderr.split()), run.explain()
