# SPDX-License-Identifier: Apache-2.0
"""Data loaders that end their epochs early once training has settled. On the FAKE allocator of fake_cuda.py."""

import pytest
from test_steps import HEAD, TELL, TRAIN, stop_after

FORKED = True  # ../fork_servers.py

LOADERS = """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(2000, 4))
def train():
    count = 0
    for batch, in DataLoader(data, batch_size=2):
        update(); count += 1
    return count
def evaluate():
    count = 0
    with torch.no_grad():
        for batch, in DataLoader(data, batch_size=2):
            fake_cuda.use(3); fake_cuda.free(3); count += 1
    return count
"""
PROGRAM = HEAD + TRAIN + LOADERS
# lines of the loops above, in the program that the tests run
AT_TRAIN, AT_EVALUATE = (PROGRAM[:PROGRAM.index(text)].count("\n") + 2
                         for text in ("    count = 0\n    for", "    count = 0\n    with"))
AT_EVALUATE += 1


def steps(done, status=0):
    assert done.status == status and done.document["hook_error"] is None, done.stderr
    return done.document["steps"]


def test_the_rest_is_seen(run_with, wheel):
    done = run_with(wheel, PROGRAM + "for _ in range(3): print(train(), evaluate())", TONNAGE_STEPS="auto")
    found = steps(done)
    assert done.stdout == "10 9\n1 1\n1 1\n" and done.words[3] == 0
    assert found["stopped"] == "settled"
    assert found["not_seen"] == [
        f"program.py:{AT_TRAIN}: 990 of the 1,000 batches of epoch 1",
        f"program.py:{AT_TRAIN}: all but the first batch of each of the next 2 epochs",
        f"program.py:{AT_EVALUATE} (evaluation): 991 of the 1,000 batches of epoch 1",
        f"program.py:{AT_EVALUATE} (evaluation): all but the first batch of each of the next 2 epochs",
    ]


@pytest.mark.parametrize("wish, expected", [("all", "1000 1000\n"), ("1000000", "1000 1000\n")])
def test_only_auto_shortens(run_with, wheel, wish, expected):
    done = run_with(wheel, PROGRAM + "print(train(), evaluate())", TONNAGE_STEPS=wish)
    assert done.stdout == expected and steps(done)["not_seen"] == [] and steps(done)["stopped"] is None


@pytest.mark.parametrize("options", ["num_workers=2", "num_workers=2, persistent_workers=True"])
def test_workers(run_with, wheel, options):
    done = run_with(wheel, PROGRAM + f"""
loader = DataLoader(data, batch_size=2, {options})
if __name__ == "__main__":
    for _ in range(3):
        count = 0
        for batch, in loader: update(); count += 1
        print(count)
""", TONNAGE_STEPS="auto")
    assert done.stdout == "10\n1\n1\n" and steps(done)["stopped"] == "settled"


WHERE = """
import os
class Where(torch.utils.data.Dataset):
    def __len__(self): return 2000
    def __getitem__(self, index):
        info = torch.utils.data.get_worker_info()
        return torch.full((4,), -1 if info is None else %s)
def epoch(**options):
    for batch in DataLoader(Where(), batch_size=2, num_workers=2, **options): update(); last = int(batch[0, 0])
    return last
"""


def test_later_epochs_start_no_workers(run_with, wheel):
    done = run_with(wheel, PROGRAM + WHERE % "1" + """
data = Where()
if __name__ == "__main__":
    print(*(epoch() for _ in range(2)))
    loader = DataLoader(data, batch_size=2, num_workers=2, timeout=5)
    for _ in range(3):
        for batch in loader: update()
        print(int(batch[0, 0]), loader.num_workers, loader.timeout)
    print(DataLoader._get_iterator is DataLoader._get_iterator)
""", TONNAGE_STEPS="auto")
    # another data set each time in the first line: that of an epoch which has not been met has its workers
    assert done.stdout == "1 1\n1 2 5\n-1 2 5\n-1 2 5\nTrue\n", done.stderr
    assert steps(done)["stopped"] == "settled"


def test_a_data_set_that_needs_a_worker_has_one(run_with, wheel):
    done = run_with(wheel, PROGRAM + WHERE.replace("-1 if info is None else", "") % "info.num_workers" + """
data = Where()
if __name__ == "__main__":
    for _ in range(3):
        for batch in DataLoader(data, batch_size=2, num_workers=2): update(); last = int(batch[0, 0])
        print(last)
""", TONNAGE_STEPS="auto")
    assert done.stdout == "2\n2\n2\n" and done.document["fast_forward_failed"] is None, done.stderr


def test_a_training_that_begins_later_shows_two_updates_and_what_they_bring(run_with, wheel):
    """The second one raises the peak, as with the state that an optimizer makes in the first: the third brings nothing new."""
    done = run_with(wheel, PROGRAM + """
def again():
    count = 0
    for batch, in DataLoader(data, batch_size=2):
        if count == 1: fake_cuda.use(100 << 20); fake_cuda.free(100 << 20)
        update(); count += 1
    return count
print(train(), again(), again(), train())
""", TONNAGE_STEPS="auto")
    assert done.stdout == "10 3 1 1\n" and steps(done)["stopped"] == "settled", done.stderr


def test_a_new_size_in_a_later_epoch_is_seen(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
class Growing(torch.utils.data.Dataset):
    size = 4
    def __len__(self): return 2000
    def __getitem__(self, index): return torch.ones(self.size)
data = Growing()
if __name__ == "__main__":
    for epoch in range(4):
        data.size = 4 + (epoch == 3)
        for batch in DataLoader(data, batch_size=2, num_workers=2): update()
""", TONNAGE_STEPS="auto")
    assert steps(done)["input_shapes"] == 2, done.stderr


def test_an_iterable_data_set_has_no_length(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True: yield torch.ones(4)
for batch in DataLoader(Endless(), batch_size=2): update()
""", TONNAGE_STEPS="auto")
    assert steps(done)["not_seen"][0].endswith(": everything after batch 10 of epoch 1")


def test_an_accumulating_loop_keeps_its_update(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
def accumulate():
    updates = count = 0
    for batch, in DataLoader(data, batch_size=2):
        count += 1
        if count % 20 == 0: update(); updates += 1
    return count, updates
print(accumulate(), evaluate(), accumulate())
""", TONNAGE_STEPS="auto")
    assert done.stdout == "(200, 10) 9 (20, 1)\n", done.stdout


@pytest.mark.parametrize(
    "body, passes",
    [
        ("it = iter(DataLoader(data))\nwhile True:\n    next(it); update()", False),
        ("def give():\n    it = iter(DataLoader(data))\n    while True: yield next(it)\n"
         "for batch in give(): update()", False),
        ("def give():\n    for batch in DataLoader(data): yield batch\nit = give()\nwhile True: next(it); update()", False),
        ("it = iter(DataLoader(data))\nwhile True:\n    try: next(it)\n    except StopIteration: break\n    update()", True),
        ("def give():\n    for batch in DataLoader(data): yield batch\nfor batch in give(): update()", True),
        ("def give():\n    yield from DataLoader(data)\nfor i, batch in enumerate(give()): update()", True),
        ("for _ in zip(DataLoader(data), DataLoader(data)): update()", True),
    ],
    ids=["next", "next-in-generator", "next-of-generator", "next-guarded", "generator", "yield-from", "zip"],
)  # fmt: skip
def test_who_takes_the_batches(run_with, wheel, body, passes):
    if passes:
        done = run_with(wheel, PROGRAM + body, TONNAGE_STEPS="auto")
        assert steps(done)["seen"] == 10 and done.words[3] == 0 and done.document["fast_forward_failed"] is None
    else:
        seen, stopped, reason = stop_after(run_with, wheel, LOADERS + body, TONNAGE_STEPS="auto")
        assert (seen, stopped, reason) == (10, "settled", 1)


def test_what_was_not_seen_without_a_loader(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
import _tonnage_guest.settle
_tonnage_guest.settle._PATIENCE = 0
for _ in range(12):
    update()
""", TONNAGE_STEPS="auto")
    line = 1 + PROGRAM[:PROGRAM.index("optimizer.step()")].count("\n")
    expected = f"everything after step 10 (the loop around program.py:{line} has no data loader)"
    assert steps(done)["not_seen"] == [expected] and done.words[3] == 1


@pytest.mark.parametrize(
    "body, status, text",
    [
        ("assert train() == 1000, 'too few'", 1, "AssertionError at program.py:"),
        ("import sys\nsys.exit(train() != 1000)", 1, "the program ended with status True"),
    ],
)
def test_a_program_that_counts_its_batches(run_with, wheel, body, status, text):
    done = run_with(wheel, PROGRAM + body, TONNAGE_STEPS="auto")
    assert steps(done, status)["stopped"] == "settled"
    assert done.document["fast_forward_failed"].startswith(text)
    assert "after data loaders had ended early" in done.document["fast_forward_failed"]


def test_an_out_of_memory_is_not_a_failed_fast_forward(run_with, wheel):
    done = run_with(wheel, PROGRAM + "train()\nfake_cuda.run_out(5000)", TONNAGE_STEPS="auto")
    assert done.document["out_of_memory_ended_process"] and done.document["fast_forward_failed"] is None


def test_a_failure_before_is_the_programs_own(run_with, wheel):
    done = run_with(wheel, PROGRAM + "for _ in range(5): update()\nraise ValueError", TONNAGE_STEPS="auto")
    assert done.status == 1 and done.document["fast_forward_failed"] is None


QUICK = "import _tonnage_guest.fast_forward as r\nr._QUIET_SECONDS = r._QUIET_SHARE = %s\n"


def test_a_fast_forward_is_over_when_a_round_repeats(run_with, wheel):
    seen, stopped, reason = stop_after(
        run_with, wheel, LOADERS + QUICK % 0 + "while True: train(); evaluate()", TONNAGE_STEPS="auto")  # fmt: skip
    # 10 until settled, and a second round that brings nothing: a third would only repeat it
    assert (seen, stopped, reason) == (11, "settled", 1)


@pytest.mark.parametrize("news, expected", [("2,1", 7), ("2,5", 10)])
def test_a_trial_is_over_a_round_behind_the_last_news_of_the_unchanged_program(run_with, wheel, news, expected):
    settings = {"TONNAGE_STEPS": "auto", "TONNAGE_TRIAL": "1", "TONNAGE_LAST_NEWS": news}
    # 6 until settled, in the first epoch; behind it an evaluation comes first, so the third is the first that repeats all
    assert stop_after(run_with, wheel, LOADERS + "while True: train(); evaluate()", **settings) == (expected, "settled", 1)


@pytest.mark.parametrize("epoch, expected", [(1, 14), (30, 39)])
def test_a_trial_that_began_before_that_was_known_is_over_behind_it(run_with, wheel, epoch, expected):
    """In the fast-forward, too: it is told in its fifth epoch, behind the fourteenth step."""
    body = TELL + "steps = 0\ndef tell_once():\n    global steps\n    steps += 1\n    if steps == 5: tell(2, %d)\n" % epoch
    settings = {"TONNAGE_STEPS": "auto", "TONNAGE_TRIAL": "1", "TONNAGE_LAST_NEWS": "later"}
    found = stop_after(run_with, wheel, LOADERS + QUICK % 0 + body + "while True: train(); tell_once(); evaluate()", **settings)
    assert found == (expected, "settled", 1)


def test_a_trial_that_knows_the_step_alone_has_settled_and_waits_for_the_epoch(run_with, wheel):
    """The step is told when memory has settled in the unchanged program: the fast-forward begins four steps behind it, and ends when all is told."""
    body = TELL + "tell(2)\nepochs = 0\ndef tell_once():\n    global epochs\n    epochs += 1\n    if epochs == 30: tell(2, 1)\n"
    done = run_with(wheel, PROGRAM + QUICK % 0 + """
import _tonnage_guest.settle as s
s._PATIENCE = 0
%s
print(train(), flush=True)
evaluate(); tell_once()
while words._page.words[3] == 0: train(); evaluate(); tell_once()
print(epochs)
""" % body, TONNAGE_STEPS="auto", TONNAGE_TRIAL="1", TONNAGE_LAST_NEWS="later")
    assert done.stdout.split() == ["6", "31"], done.stdout + done.stderr


NEWS_AT_THE_END = """
for epoch in range(3):
    train(); evaluate()
%s
import _tonnage_guest.fast_forward as r
before = r.last_news()
r.program_ended()
print(before, r.last_news())
"""


@pytest.mark.parametrize("last, expected", [("pass", "None 2"), ("fake_cuda.use(90000); fake_cuda.free(90000)", "None 3")])
def test_a_program_that_ends_has_told_when_its_last_news_came(run_with, wheel, last, expected):
    """What comes behind its last epoch is news of that one: a trial goes to its end."""
    done = run_with(wheel, PROGRAM + NEWS_AT_THE_END % last, TONNAGE_STEPS="auto")
    assert done.stdout.strip() == expected, done.stdout + done.stderr


def test_a_trial_goes_on_while_something_is_new(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
import _tonnage_guest.settle as s
s._PATIENCE = 0
for epoch in range(5):
    train()
    fake_cuda.use(1000 << epoch); fake_cuda.free(1000 << epoch)
print("end")
""", TONNAGE_STEPS="auto", TONNAGE_TRIAL="1", TONNAGE_LAST_NEWS="2,1")
    assert done.stdout == "end\n" and done.words[3] == 0 and done.words[1] == 17000, done.words


def test_a_fast_forward_goes_on_while_something_is_new(run_with, wheel):
    done = run_with(wheel, PROGRAM + QUICK % 0 + """
import _tonnage_guest.settle as s
s._PATIENCE = 0
for epoch in range(5):  # a sixth would be the first to bring nothing new
    train()
    fake_cuda.use(1000 << epoch); fake_cuda.free(1000 << epoch)
print("end")
""", TONNAGE_STEPS="auto")
    assert done.stdout == "end\n" and done.words[3] == 0 and done.words[1] == 17000, done.words


def test_a_quick_rest_is_gone_through_to_its_end(run_with, wheel):
    done = run_with(wheel, PROGRAM + QUICK % 60 + "for _ in range(50): train()\nprint('end')", TONNAGE_STEPS="auto")
    assert done.stdout == "end\n" and steps(done)["seen"] == 59 and done.words[3] == 0


def test_time_ends_a_fast_forward(run_with, wheel):
    body = "from _tonnage_guest.state import settings\ntrain()\nsettings.seconds = 0\nwhile True: train()"
    assert stop_after(run_with, wheel, LOADERS + body, TONNAGE_STEPS="auto") == (10, "settled", 1)


def test_an_evaluation_before_training_ends(run_with, wheel):
    done = run_with(wheel, PROGRAM + "print(evaluate(), train())", TONNAGE_STEPS="auto")
    assert done.stdout == "200 10\n" and steps(done)["stopped"] == "settled"


def test_time_ends_an_evaluation_without_a_loader(run_with, wheel):
    """The optimizer is made, and no step comes: what the hook knows is written before the run is ended."""
    body = "from _tonnage_guest.state import settings\nsettings.seconds = 0\nwith torch.no_grad():\n    while True: net(torch.ones(2, 4))"
    assert stop_after(run_with, wheel, body, TONNAGE_STEPS="auto") == (0, "limit", 2)


@pytest.mark.parametrize(("seconds", "expected"), [(0, "9 10"), (60, "200 10")])
def test_an_evaluation_before_training_is_cut_short_where_it_is_long(run_with, wheel, seconds, expected):
    """A quick one may make what the training needs: only one of hundreds of batches is."""
    body = "import _tonnage_guest.fast_forward as r\nr._LONG_SECONDS = %s\nprint(evaluate(), train())" % seconds
    done = run_with(wheel, PROGRAM + body, TONNAGE_STEPS="auto")
    assert done.stdout == expected + "\n" and steps(done)["stopped"] == "settled"


def test_what_an_evaluation_keeps_before_any_step_is_a_growth(run_with, wheel):
    body = PROGRAM.replace("fake_cuda.use(3); fake_cuda.free(3);", "fake_cuda.use(1 << 20);") + "print(evaluate())"
    done = run_with(wheel, body, TONNAGE_STEPS="auto")
    assert done.stdout == "200\n" and steps(done)["stopped"] == "settled" and steps(done)["seen"] == 0
    growth = done.document["growth"]
    assert (growth["unit"], growth["bytes"], growth["of"]) == ("evaluation batch", 1 << 20, 1000), growth


def test_what_is_filled_before_training_is_no_growth(run_with, wheel):
    """A data set that a quick loop moves to the card: it has come to its end."""
    body = PROGRAM.replace("fake_cuda.use(3); fake_cuda.free(3);", "fake_cuda.use(1 << 20);").replace("data, batch_size=2", "data, batch_size=20")
    done = run_with(wheel, body + "print(evaluate(), train())", TONNAGE_STEPS="auto")
    assert done.stdout.split()[0] == "100" and steps(done)["stopped"] == "settled" and done.document["growth"] is None


def test_inference(run_with, wheel):
    done = run_with(wheel, HEAD + LOADERS + "print(evaluate())", TONNAGE_STEPS="auto")
    assert 8 <= int(done.stdout) < 20 and steps(done)["unit"] == "loader"


# Rounds of so many seconds, by a clock of the test.
ROUNDS = """
import _tonnage_guest.fast_forward as fast_forward
now = [1000.0]
fast_forward._clock = lambda: now[0]
def go(rounds, late):
    for epoch in range(rounds):
        train()
        now[0] += %s
        if epoch == late: fake_cuda.use(300); fake_cuda.free(300)
"""


@pytest.mark.parametrize(
    "seconds, call, expected",
    [
        (0.05, "go(100000, 99000)", 12),  # nothing can come in the four seconds
        (0.05, "go(100000, 60)", 73),  # it comes within them, and brings something
        (0.05, "go(100000, 200)", 213),  # after ten, because the text says so
        (0.05, "go(100000, 700)", 12),  # after 35: more than a quarter of the time limit
        (1.0, "go(100000, 99000)", 12),
        (5.0, "go(100000, 4)", 15),  # a round takes longer than the four seconds
        (5.0, "go(100000, 40)", 10),  # after 200 seconds
        (0.05, "while True: train(); now[0] += 0.05", 90),  # no text
    ],
)
def test_rounds_are_gone_through_as_far_as_the_text_says(run_with, wheel, seconds, call, expected):
    """10 steps until settled, then one a round."""
    seen, stopped, _ = stop_after(run_with, wheel, LOADERS + ROUNDS % seconds + call, TONNAGE_STEPS="auto")
    assert (seen, stopped) == (expected, "settled")


@pytest.mark.parametrize("rounds", [60, 20])
def test_the_end_of_the_loop_is_waited_for_where_it_comes_in_time(run_with, wheel, rounds):
    done = run_with(wheel, PROGRAM + ROUNDS % 0.05 + "go(%d, -1); print('the end')" % rounds, TONNAGE_STEPS="auto")
    assert done.stdout == "the end\n" and steps(done)["seen"] == 10 + rounds - 1 and done.words[3] == 0


def test_what_was_not_waited_for_is_told(run_with, wheel):
    done = run_with(wheel, PROGRAM + ROUNDS % 0.05 + """
import _tonnage_guest.settle
_tonnage_guest.settle._PATIENCE = 0
go(700, 690)
""", TONNAGE_STEPS="auto")
    line = (PROGRAM + ROUNDS)[:(PROGRAM + ROUNDS).index("        if epoch == late")].count("\n") + 1
    assert f"program.py:{line}: what round 691 of this loop is the first to do (epoch == late), some 39 s away: --seconds 170 waits for it" in steps(done)["not_seen"]
