# SPDX-License-Identifier: Apache-2.0
"""Calls that say more about memory: what is noted of them, and that the program cannot tell."""

import re

FORKED = True  # ../fork_servers.py


def places(done, what):
    return [(row["line"], row["count"], row["requested_bytes"]) for row in done.document["usage"] if row["what"] == what]


def test_pinned_tensors_count_as_the_powers_of_two_that_they_take(run_with, wheel):
    done = run_with(wheel, """
        import torch
        for _ in range(3):
            try:
                torch.zeros(1100, dtype=torch.uint8).pin_memory()
            except RuntimeError:
                pass  # there is no GPU here
            try:
                torch.zeros(5 << 20, dtype=torch.uint8).pin_memory()
            except RuntimeError:
                pass
        """)
    assert done.document["hook_error"] is None, done.stderr
    assert places(done, "pin_memory") == [(5, 3, 3 * 4096), (9, 3, 3 * (8 << 20))]


def test_what_a_data_loader_pins_is_its_own_affair(run_with, wheel):
    done = run_with(wheel, """
        import torch
        from torch.utils.data._utils.pin_memory import pin_memory
        for pin in (pin_memory, lambda tensor: tensor.pin_memory()):
            try:
                pin(torch.zeros(5 << 20, dtype=torch.uint8))
            except RuntimeError:
                pass  # there is no GPU here
        """)
    assert done.document["hook_error"] is None, done.stderr
    assert [(count, size) for _, count, size in places(done, "pin_memory")] == [(1, 8 << 20)]


def test_warnings_of_torch_are_noted_where_they_point_and_shown_as_ever(run_with, wheel):
    program = """
        import warnings
        import torch
        torch.tensor(torch.zeros(3))
        warnings.warn("of the program's own")
        """
    done, without = run_with(wheel, program), run_with(wheel, program, TONNAGE_RUN="")
    assert [line for line, _, _ in places(done, "tensor_of_a_tensor")] == [4]
    assert done.stderr == without.stderr and "To copy construct" in done.stderr and "own" in done.stderr


def test_methods_are_torchs_own(run_with, wheel):
    program = """
        import inspect
        import torch
        model = torch.nn.Linear(2, 2)
        print(model.zero_grad.__func__ is torch.nn.Module.zero_grad, inspect.signature(model.zero_grad))
        print(torch.optim.Optimizer.zero_grad.__qualname__, torch.Tensor.pin_memory.__objclass__)
        torch.optim.SGD(model.parameters(), 0.1).zero_grad(wrong=1)
        """
    done, without = run_with(wheel, program), run_with(wheel, program, TONNAGE_RUN="")
    assert done.document["hook_error"] is None and "unexpected keyword argument 'wrong'" in done.stderr
    assert (done.stdout, _without_compiler(done.stderr)) == (without.stdout, _without_compiler(without.stderr))


def _without_compiler(text):
    """A traceback without the compiler's own frame: the hook leaves it out where nothing has imported the compiler (uncompiled.py)."""
    return re.sub(r'  File "[^"]*/torch/_dynamo/[^\n]*\n(    [^\n]*\n)+', "", text)
