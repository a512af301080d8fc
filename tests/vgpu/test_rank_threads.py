# SPDX-License-Identifier: Apache-2.0
"""Causes that threads about several cards found (bench/rank_threads): the report names the card, what need not be there, and what to do."""

from conftest import MAIN, ROOT

PROGRAM = str(ROOT / "bench/rank_threads/threads.py")
RANKS = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", PROGRAM]


def thread(tonnage, words, memory):
    return tonnage(MAIN, words, "--gpus=2", "--gpu=rtx4090", f"--memory={memory}", env={"OMP_NUM_THREADS": "1"})


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


def test_outputs_that_data_parallel_gathers(tonnage):
    run = thread(tonnage, [PROGRAM, "gathered_maps"], "1000MiB")
    assert (run.status, run.verdict) == (10, "out_of_memory"), run.explain()
    assert [card["out_of_memory"] for card in run.report["cards"]] == [True, False], run.explain()
    (finding,) = found(run, "gathered_outputs")
    assert finding["bytes"] == 9 * 32 << 20 and finding == run.report["findings"][0], run.explain()  # of 12 maps of 32 MiB
    assert "DataParallel gathers the outputs of all cards on card 0" in " ".join(run.stderr.split()), run.explain()
