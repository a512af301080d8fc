# SPDX-License-Identifier: Apache-2.0
"""What later rounds of a loop do that none has done, told from its text: against what the loop then does."""

import os
import pathlib
import sys
import textwrap
import weakref

import pytest

os.environ.setdefault("TONNAGE_RUN", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tonnage/guest"))
from _tonnage_guest import later_rounds  # noqa: E402

FORKED = True  # ../fork_servers.py

HEAD = """
import argparse, functools, math
class Batches:
    def __iter__(self): return self
    def __init__(self): self.given = 0
    def __next__(self):
        look()
        self.given += 1
        if self.given > 1: raise StopIteration
        return self.given
def train():
    for batch in Batches(): pass
args = argparse.Namespace(every=7, epochs=30, off=12, never=False, sizes=[32, 64], nested=argparse.Namespace(warm=5))
def do(*a, **k): pass
"""


def looks(tmp_path, text, when=3):
    """[(round, first) of the news], as told when round `when` begins; None where the text tells nothing."""
    file = tmp_path / ("program_%d.py" % len(list(tmp_path.iterdir())))
    file.write_text(HEAD + textwrap.dedent(text))
    told = []

    def look():
        told.append(later_rounds.look(sys._getframe(1)))

    exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__", "look": look})
    found = told[2 * (when - 1)]  # each round asks twice: for its batch, and for the end
    return found and [(news.round, news.first) for news in found.news]


@pytest.mark.parametrize(
    "body, expected",
    [
        ("train()", []),
        ("train()\n    if epoch == 20: do()", [(21, True)]),
        ("train()\n    if epoch % 5 == 0: do()", [(6, False)]),  # the first round did it, but before anything had settled
        ("train()\n    if (epoch + 1) % args.every == 0: do()", [(7, True)]),
        ("train()\n    if (epoch + 1) % args.every == 0 or epoch == args.epochs - 1: do()", [(7, True)]),
        ("train()\n    if (epoch + 1) % args.every == 0: print(epoch)", [(7, False)]),  # it only says something
        ("train()\n    if args.never and epoch >= 20: do()", []),
        ("train()\n    if epoch > args.nested.warm and epoch < args.off: do()", [(7, True)]),
        ("train()\n    if not epoch % 10: do()", [(11, False)]),
        ("train()\n    late = epoch >= 20\n    if late and not args.never: do()", [(21, True)]),
        ("train()\n    if epoch in (8, 16): do()", [(9, True)]),
        ("train()\n    x = 3 if epoch < 9 else 4", [(10, True)]),
        ("train()\n    print('%d' % epoch, f'{epoch}', '{}'.format(epoch)); lr = 0.1 ** (epoch // 10)", []),
        # what has to do with something else, too, may be so or not
        ("train()\n    best = 1\n    if epoch >= 9 and best > 2: do()", [(10, True)]),
        ("train()\n    best = 1\n    if best > 2: do()", []),
        # the text does not tell
        ("train()\n    args.epoch = epoch", None),
        ("train()\n    size = args.sizes[epoch // 20]; do(size, [0] * size)", None),
        ("train()\n    for _ in range(epoch): do()", None),
        ("train()\n    k = epoch\n    k += epoch", None),
        ("train()\n    k = 1\n    k = k + epoch\n    if k: do()", None),
        ("train()\n    k = late if epoch else 1\n    late = k\n    if late > 3: do()", None),
        ("train()\n    if math.gcd(epoch, 6) == 6: do()", None),
    ],
)
def test_tests_of_the_variable(tmp_path, body, expected):
    assert looks(tmp_path, "for epoch in range(30):\n    %s" % body) == expected
    inside = "def main():\n    for epoch in range(30):\n" + textwrap.indent("    %s" % body, "    ") + "\nmain()"
    assert looks(tmp_path, inside) == expected


def test_functions_that_are_given_it(tmp_path):
    assert looks(tmp_path, """
        class Callback:
            def __init__(self, period): self.period, self.on = period, True
            def ended(self, epoch):
                if epoch % self.period == 0 and self.on: do()
        def fit(callback, epoch, total, *, late=20):
            train()
            callback.ended(epoch + 1)
            if epoch + 1 == total: print("done")
            if epoch > late: do()
        callback = Callback(9)
        for epoch in range(30):
            fit(callback, epoch, 30, late=args.off)
    """) == [(9, True), (14, True), (30, False)]  # fmt: skip


@pytest.mark.parametrize(
    "call, expected",
    [
        ("def f(a, **k): pass\nfor epoch in range(9):\n    train(); f(1, **{'b': epoch})", None),
        ("def f(a): a = a + 1; do(a)\nfor epoch in range(9):\n    train(); f(epoch)", None),
        ("def f(*a): print(a)\nfor epoch in range(9):\n    train(); f(*[epoch])", None),
        ("def f(a): return f(a)\nfor epoch in range(9):\n    train()\n    if epoch < 0: f(epoch)", []),
        ("g = functools.partial(do, 1)\nfor epoch in range(9):\n    train(); x = [0.0]; x[0] = 1.0 * epoch", []),
        ("tqdm = do\nfor epoch in range(9):\n    p = tqdm(desc=epoch)\n    p = tqdm(desc=epoch)\n    state = {'epoch': epoch}\n    train()", []),
        ("def shown():\n    if epoch == 6: do()\nfor epoch in range(9):\n    train(); shown()", [(7, True)]),
        ("def shown(epoch):\n    if epoch == 6: do()\nfor epoch in range(9):\n    train(); shown(0)", []),
    ],
)
def test_ways_to_hand_it_on(tmp_path, call, expected):
    assert looks(tmp_path, call) == expected


@pytest.mark.parametrize(
    "head",
    ["for epoch in range(2, 30, 2)", "for epoch in tqdm(range(30), desc='x')", "rounds = range(30)\nfor epoch in rounds", "for epoch in trange(30)",
     "for epoch in reversed(range(30))", "for epoch in [1, 2, 3, 4]", "epoch = 0\nwhile epoch < 30", "for epoch, x in enumerate(range(30))"],
)  # fmt: skip
def test_heads(tmp_path, head):
    text = "def tqdm(x, desc=''): return x\ntrange = range\n%s:\n    train()\n    if epoch == 20: do()" % head
    text += "\n    epoch += 1" if "while" in head else ""
    known = "tqdm" in head or "= range" in head or "trange" in head
    assert looks(tmp_path, text) == ([(10, True)] if "2, 30" in head else [(21, True)] if known else None)


def test_the_loop_of_a_library_is_its_own(tmp_path):
    library = tmp_path / "site-packages/some"
    library.mkdir(parents=True)
    (library / "fitting.py").write_text("def fit(train):\n    for _ in range(4): train()\n")
    sys.path.insert(0, str(library))
    try:
        assert looks(tmp_path, "from fitting import fit\nfor fold in range(5):\n    fit(train)") is None
    finally:
        sys.path.remove(str(library))


def test_it_knows_where_the_loop_is(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(HEAD + 2 * "for epoch in range(30):\n    train()\n")
    told = []

    def look():
        frame = sys._getframe(1)
        if not told:
            told.append(later_rounds.look(frame))
        else:
            told.append(told[0].left() if told[0].goes_on(frame) else None)

    exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__", "look": look})
    assert told[2::2] == [*range(28, -1, -1), *([None] * 30)], "rounds that are left; then it is another loop"


def test_nothing_is_kept_alive(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(HEAD + textwrap.dedent("""
        class Big: pass
        def f(epoch, big): pass
        def main():
            for epoch in range(4):
                big = Big()
                late = epoch > 2
                seen(big); f(epoch, big)
                train()
                del big
                gone()
        main()
    """))
    last, kept = [], []

    def seen(big):
        last[:] = [weakref.ref(big)]

    def look():
        kept.append(later_rounds.look(sys._getframe(1)))

    def gone():
        assert last[0]() is None, "told without the collector"

    exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__", "look": look, "seen": seen, "gone": gone})
    assert len(kept) == 8
