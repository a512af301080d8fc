# SPDX-License-Identifier: Apache-2.0
"""Whether a StopIteration from an iterator's __next__ would end a loop quietly, told from byte code.

It does where a `for`, a comprehension or a `yield from` takes it, or an `except StopIteration`. It goes on to the caller
where nothing catches it, as in a __next__ of somebody's own. In a generator it would become a RuntimeError, and where
nobody catches it, it would end the program: the answer is no then, and wherever the code leaves a doubt.
"""

import dis
import inspect

_ENDS = "ends"  # taken as the end of a loop, or caught as what it is
_PASSES = "passes"  # leaves the frame as it came
_BREAKS = "breaks"  # anything else: a handler for all errors, another exception in its place

_LOOPS = {dis.opmap[name] for name in ("FOR_ITER", "SEND", "YIELD_FROM") if name in dis.opmap}
_CACHE = 0
_MATCHES = ("CHECK_EXC_MATCH", "JUMP_IF_NOT_EXC_MATCH")
_BLOCKS = ("SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH")
_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_FAST", "LOAD_DEREF")
_MAX_FRAMES = 40
_MAX_HANDLERS = 20

_known = {}  # (id of code, offset) -> (code, answer); the code is kept, so that its id stays its own


def ends_loop(frame):
    """True when a StopIteration that reaches `frame` at its current instruction ends a loop and nothing else."""
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return False
        code = frame.f_code
        answer = _answer(code, frame.f_lasti)
        generator = code.co_flags & inspect.CO_GENERATOR
        if answer is _ENDS and not generator:
            return True
        if answer is _BREAKS or (answer is _PASSES and generator):
            return False
        # A generator whose loop ends may end with it: then who takes from it sees a StopIteration in turn.
        frame = frame.f_back
    return False


def _answer(code, offset):
    key = (id(code), offset)
    found = _known.get(key)
    if found is None:
        found = _known[key] = (code, _look(code, offset))
    return found[1]


def _look(code, offset):
    if offset < 0 or code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return _BREAKS
    bytecode = code.co_code
    while bytecode[offset] == _CACHE and offset > 0:
        offset -= 2  # while an inlined generator runs, Python 3.12 points behind the instruction
    if bytecode[offset] in _LOOPS:
        return _ENDS
    instructions = list(dis.get_instructions(code))
    handler_of = _handlers(code, instructions)
    for _ in range(_MAX_HANDLERS):
        target = handler_of(offset)
        if target is None:
            return _PASSES
        answer, offset = _follow([row for row in instructions if row.offset >= target])
        if answer is not _PASSES:
            return answer
    return _BREAKS


def _follow(rows):
    """What a handler that begins with these instructions does: (answer, where it raises again)."""
    names = []
    caught = False
    for row in rows:
        if row.opname in _NAMES:
            names.append(row.argval)
        elif row.opname in _MATCHES:
            if "StopIteration" in names:
                return _body(rows[rows.index(row) + 1:])
            caught = caught or not {"Exception", "BaseException"}.isdisjoint(names)
            names = []
        elif row.opname == "RERAISE" or (row.opname == "RAISE_VARARGS" and row.arg == 0):
            return (_BREAKS if caught else _PASSES), row.offset
        elif row.opname == "POP_EXCEPT" and rows[0].opname != "COPY" and not _is_with(rows):
            # caught by a bare `except:`, or we are past a clause for other errors, which ends with one, too
            if not _after_a_match(rows, row):
                return _BREAKS, None
    return _BREAKS, None


def _body(rows):
    """As _follow, for the body of an `except StopIteration`."""
    for row in rows:
        if row.opname == "POP_EXCEPT":
            return _ENDS, None
        if row.opname == "RAISE_VARARGS":
            return (_PASSES if row.arg == 0 else _BREAKS), row.offset
    return _ENDS, None


def _is_with(rows):
    return any(row.opname in ("WITH_EXCEPT_START", "WITH_CLEANUP_START") for row in rows[:3])


def _after_a_match(rows, last):
    return any(row.opname in _MATCHES for row in rows[:rows.index(last)])


def _handlers(code, instructions):
    """A function that maps an offset to that of its innermost handler, or None."""
    table = getattr(code, "co_exceptiontable", None)
    ranges = _table(table) if table is not None else _blocks(instructions)

    def handler_of(offset):
        return max(((start, target) for start, end, target in ranges if start <= offset < end), default=(0, None))[1]

    return handler_of


def _blocks(instructions):
    """(start, end, handler) before Python 3.11: what lies between the instruction that sets a block up and its handler."""
    return [(row.offset, row.argval, row.argval) for row in instructions if row.opname in _BLOCKS]


def _table(table):
    """(start, end, handler) from Python 3.11 on: numbers of six bits a byte, bit 6 says that more follow."""
    numbers = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    return [(2 * start, 2 * (start + length), 2 * target)
            for start, length, target in zip(numbers[::4], numbers[1::4], numbers[2::4])]
