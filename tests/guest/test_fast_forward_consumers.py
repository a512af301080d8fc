# SPDX-License-Identifier: Apache-2.0
"""Whether a StopIteration would end a loop quietly, told from byte code: what is told is what then happens."""

import contextlib
import os
import pathlib
import sys

import pytest

os.environ.setdefault("TONNAGE_RUN", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tonnage/guest"))
from _tonnage_guest import consumers  # noqa: E402

FORKED = True  # ../fork_servers.py


class Source:
    """Ends after three items; notes each time what is told of who takes them."""

    told = []

    def __init__(self):
        self.given = 0

    def __iter__(self):
        return self

    def __next__(self):
        Source.told.append(consumers.ends_loop(sys._getframe(1)))
        self.given += 1
        if self.given > 3:
            raise StopIteration
        return self.given


class Wrapper:
    """As Lightning's fetchers: notes the end and raises again."""

    def __init__(self):
        self.source, self.done = Source(), False

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self.source)
        except StopIteration:
            self.done = True
            raise
        finally:
            len("")


def loop():
    for _ in Source():
        pass


def wrapped():
    for _ in enumerate(zip(Source(), range(9))):
        pass


def comprehension():
    return [item for item in Source()]


def guarded():
    source = Source()
    while True:
        try:
            next(source)
        except StopIteration:
            break


def guarded_among_others():
    source = Source()
    while True:
        try:
            try:
                next(source)
            except (ValueError, KeyError):
                pass
        except TypeError:
            pass
        except StopIteration as end:
            return end


def guarded_in_with():
    source = Source()
    while True:
        with contextlib.nullcontext():
            try:
                with contextlib.nullcontext():
                    next(source)
            except StopIteration:
                return
            finally:
                len("")


def generator():
    for item in Source():
        yield item


def delegating():
    yield from Source()


def one_ahead():
    source = Source()
    try:
        current = next(source)
    except StopIteration:
        return
    while True:
        try:
            following = next(source)
            yield current
            current = following
        except StopIteration:
            if current:
                yield current
            break


def takes(make):
    def run():
        for _ in make():
            pass

    return run


def advance(fetcher):
    return next(fetcher)


def as_lightning_runs():
    fetcher = Wrapper()
    while True:
        try:
            advance(fetcher)
            len("")
        except StopIteration:
            break
        finally:
            len("")


def bare():
    source = Source()
    for _ in range(4):
        next(source)


def bare_in_generator():
    source = Source()
    while True:
        yield next(source)


def bare_of(make):
    def run():
        taken = make()
        for _ in range(4):
            next(taken)

    return run


def caught_with_everything():
    source = Source()
    try:
        while True:
            next(source)
    except Exception:
        pass


def caught_barely():
    source = Source()
    try:
        while True:
            next(source)
    except:  # noqa: E722
        pass


def another_error():
    source = Source()
    while True:
        try:
            next(source)
        except StopIteration:
            raise RuntimeError("empty")


ENDS = [loop, wrapped, comprehension, guarded, guarded_among_others, guarded_in_with, takes(generator),
        takes(delegating), takes(one_ahead), takes(Wrapper), as_lightning_runs]  # fmt: skip
BREAKS = [bare, takes(bare_in_generator), bare_of(generator), bare_of(Wrapper), caught_with_everything, caught_barely,
          another_error]  # fmt: skip


@pytest.mark.parametrize("consumer", ENDS)
def test_ends(consumer):
    Source.told = []
    consumer()
    assert len(Source.told) == 4 and all(Source.told)


@pytest.mark.parametrize("consumer", BREAKS)
def test_does_not_end(consumer):
    Source.told = []
    with contextlib.suppress(StopIteration, RuntimeError):
        consumer()
    assert len(Source.told) == 4 and not any(Source.told)
