# SPDX-License-Identifier: Apache-2.0
"""What carries the changes: the table, TONNAGE_CHANGES, edits of text, and that no program is disturbed."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib

import pytest
from conftest import HERE, ROOT

FOLDER = ROOT / "python/tonnage/changes"


def load(name):
    """A module of the package that needs nothing of the guest."""
    sys.path.insert(0, str(ROOT / "python/tonnage/guest"))
    try:
        if "_tonnage_changes" not in sys.modules:
            spec = importlib.util.spec_from_file_location("_tonnage_changes", FOLDER / "__init__.py")
            sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[spec.name])
        return importlib.import_module("_tonnage_changes." + name)
    finally:
        sys.path.pop(0)


table, spec, source, code, alloc = map(load, ("table", "spec", "source", "code", "alloc"))


# ---- the table ----


def test_every_row_has_its_file_and_a_known_promise():
    for row in table.ROWS:
        assert (FOLDER / f"{table.module_of(row.id)}.py").exists(), row.id
        assert row.results in table.ORDER
        assert all(other in table.BY_ID for other in row.conflicts), row.id


def test_every_change_is_tested():
    text = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    missing = [row.id for row in table.ROWS if not re.search(r'"%s["=]' % row.id, text)]
    assert not missing


# Changes that come first in no example, and why.
LAST = "another training, which stands first only where nothing else fits; in a pair of examples, or in tests/changes"
NEEDS = "needs a package that the environment of the examples has not, or several ranks"
NO_EXAMPLE = {
    **dict.fromkeys(("autocast", "batch", "sgd_no_momentum", "adam8bit", "half_weights", "kv_cache_limit", "option_precision",
                     "option_optimizer", "option_length", "option_resolution"), LAST),
    **dict.fromkeys(("shard_state", "vae_slicing", "option_weights"), NEEDS),
    **dict.fromkeys(("loader_prefetch", "loader_pin", "loader_workers"), "of the computer's memory: tests/vgpu/test_host_memory.py"),
    "nothing": "acts on nothing", "empty_cache_out_of_loop": "saves time, no memory",
    "foreach": "fused=True is as good and quicker wherever it acts", "offload_activations": "slower than what saves as much",
    "train_mode": "of from_pretrained's models: tests/changes/test_trainers.py",
    "release_checkpoint": "map_location saves as much, and more while loading",
    "unbind_trainings": "where release_trainings is not enough", "collect_trainings": "where release_trainings is not enough",
}  # fmt: skip


def test_every_change_comes_first_in_an_example():
    """Or it is known why not. tests/vgpu/test_fix.py holds each example to its own, patched, to the byte."""
    rows = tomllib.loads((ROOT / "examples/examples.toml").read_text())["example"]
    first = {part.partition("=")[0] for row in rows for part in row.get("remedy", "").split(",")}
    assert {row.id for row in table.ROWS} - first == set(NO_EXAMPLE)


SPELLINGS = json.loads((HERE.parent / "golden/changes/spelling.json").read_text())


@pytest.mark.parametrize("asked, parts", SPELLINGS, ids=[asked or "nothing" for asked, parts in SPELLINGS])
def test_both_sides_read_the_same(asked, parts):
    """tests/unit/test_change.c holds C's reader to the same cases."""
    assert [list(part) for part in spec.split(asked)] == parts


def test_the_build_makes_a_row_of_each_change(tmp_path):
    made = tmp_path / "facts.def"
    subprocess.run([sys.executable, ROOT / "src/change/build_facts.py", FOLDER / "table.py", made], check=True)
    rows = re.findall(r"^CHANGE\((\w+), (\".*?\"), (\w+), \"(.*?)\", (\d+), (.*), \"(.*?)\", (\w+)\)$", made.read_text(), re.M)
    shares = ("parameters", "gradients", "state", "activations", "temporaries", "rounding")
    assert [(row.id, row.title, " ".join(row.conflicts), row.cost, row.saves, " ".join(row.phases), row.choice) for row in table.ROWS] == [
        (name, json.loads(title), conflicts, int(cost), {share: value for share, value in zip(shares, map(float, saves.split(", "))) if value},
         phases, choice.lower())
        for name, title, results, conflicts, cost, saves, phases, choice in rows]  # fmt: skip


def test_changes_that_do_not_go_together_are_not_both_applied():
    third, first, second = spec.parse("nonsense,accumulate=2,batch=4")
    assert first.why_not is None
    assert "accumulate" in second.why_not
    assert "nonsense" in third.why_not


# ---- the allocator's settings ----


@pytest.mark.parametrize("row", table.BY_ID["alloc"].values)
def test_settings_worth_trying_pass_their_own_check(row):
    alloc.check(alloc.parse(row))


@pytest.mark.parametrize(
    "setting, word",
    [
        ("max_split_size:64", "knows no setting"),
        ("max_split_size_mb:20", "at least 21"),
        ("max_split_size_mb:many", "whole number"),
        ("garbage_collection_threshold:1.0", "between 0 and 1"),
        ("roundup_power2_divisions:3", "power of two"),
        ("roundup_power2_divisions:[256:2,512:3]", "power of two"),
        ("expandable_segments:true", "True or False"),
        ("expandable_segments:True,max_split_size_mb:64", "without bound"),
        ("backend:cudaMallocAsync,max_split_size_mb:64", "none of the other"),
        ("large_segment_size_mb:64,max_split_size_mb:32", "at least large_segment_size_mb"),
        ("expandable_segments:True,expandable_segments:False", "twice"),
        ("expandable_segments", "no value"),
        ("", "no setting"),
    ],
)
def test_bad_settings_are_refused(setting, word):
    with pytest.raises(alloc.Bad, match=word):
        alloc.check(alloc.parse(setting))


def test_settings_of_the_user_stay():
    assert alloc.merge("max_split_size_mb:64,backend:native", "max_split_size_mb:128") == (
        "backend:native,max_split_size_mb:128")  # fmt: skip


def test_the_allocator_uses_the_setting(virtual):
    program = """
        import torch
        x = torch.zeros(3 << 20, device="cuda")
        print(torch.cuda.memory_reserved() >> 20, torch.cuda.memory_snapshot()[0]["is_expandable"])
    """
    assert virtual(program).stdout == "12 False\n"
    after = virtual(program, "alloc=expandable_segments:True")
    assert after.stdout == "20 True\n"
    entry = after.change("alloc")
    assert entry["results"] == "same" and entry["patch"] is None
    by_hand = virtual(program, **entry["environment"])
    assert by_hand.peaks == after.peaks


# ---- edits of text ----

TEXT = '''\
"""A program."""
from __future__ import annotations
def f(x):
    y = x + 1  # one
    text = """
kept as it is
"""
    return g(y,
             text)
'''


def edited(*makers, text=TEXT):
    file = source.Source("/nowhere/program.py", text)
    all_edits = []
    for make in makers:
        edits = source.Edits(file)
        make(file, edits)
        all_edits.append(edits)
    return file, source.render(file, all_edits)


def test_changes_combine_in_any_order_and_lines_are_remembered():
    def wrap(file, edits):
        body = file.tree.body[2].body
        edits.wrap(body[:2], "with a:")

    def insert(file, edits):
        edits.insert_after(file.tree.body[2].body[0], "del x")
        edits.insert_at_top("import os")

    one, two = edited(wrap, insert)[1], edited(insert, wrap)[1]
    assert one == two
    text, origins = one
    assert text == (
        '"""A program."""\nfrom __future__ import annotations\nimport os\ndef f(x):\n'
        '    with a:\n        y = x + 1  # one\n'
        '        del x\n        text = """\nkept as it is\n"""\n    return g(y,\n             text)\n'
    )
    assert origins == [1, 2, 3, 3, 4, 4, 4, 5, 6, 7, 8, 9, 10]


def test_compiled_code_says_the_original_lines():
    file, (text, origins) = edited(lambda file, edits: edits.insert_at_top("import os", "import sys"))
    code_object = compile(source.changed_tree(file, text, origins), file.path, "exec")
    function = next(c for c in code_object.co_consts if hasattr(c, "co_lines") and c.co_name == "f")
    assert function.co_firstlineno == 3
    assert {line for _, _, line in function.co_lines() if line} == {3, 4, 5, 8, 9}


def test_a_patch_of_nothing_is_none():
    file, (text, _) = edited(lambda file, edits: None)
    assert source.difference(file, text) is None


def test_overlapping_changes_are_a_conflict():
    def change(new):
        return lambda file, edits: edits.replace(file.tree.body[2].body[0].value, new)

    with pytest.raises(source.Conflict):
        edited(change("1"), change("2"))


def test_several_statements_on_a_line_are_a_conflict():
    with pytest.raises(source.Conflict):
        edited(lambda file, edits: edits.wrap([file.tree.body[0]], "with a:"), text="a = 1; b = 2\n")


@pytest.mark.parametrize(
    "before, after",
    [
        ("f(a)", "f(a, k=1)"),
        ("f()", "f(k=1)"),
        ("f(a, k=7)", "f(a, k=1)"),
        ("f(a,)", "f(a, k=1,)"),
        ("f((a + b))", "f((a + b), k=1)"),
        ("f(x for x in y)", None),
        ("f(\n    a,\n    b=2,\n)", "f(\n    a,\n    b=2,\n    k=1,\n)"),
        ("f(\n    a,\n    b=2\n)", "f(\n    a,\n    b=2,\n    k=1,\n)"),
        ("f(a, 'ä', b)", "f(a, 'ä', b, k=1)"),
        ("f(a, **extra)", 'f(a, **{**extra, "k": 1})'),  # which may have a k
        ("f(a, k=7, **extra)", "f(a, k=1, **extra)"),
        ("f(a, **(x or {}), b=2)", 'f(a, **({**(x or {}), "k": 1}), b=2)'),
    ],
)
def test_arguments_are_added_where_a_person_would(before, after):
    def add(file, edits):
        code.set_keyword(edits, file.tree.body[0].value, "k", "1")

    if after is None:
        with pytest.raises(source.Conflict):
            edited(add, text=before + "\n")
    else:
        assert edited(add, text=before + "\n")[1][0] == after + "\n"


# ---- the program is not disturbed ----


def test_a_rewritten_script_sees_itself_as_ever(on_cpu):
    program = """
        import sys, torch
        from torch import nn

        def train(model, optimizer):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            return sys._getframe().f_lineno

        if __name__ == "__main__":
            model = nn.Linear(2, 2)
            line = train(model, torch.optim.SGD(model.parameters(), lr=1))
            print(line, __spec__, __package__, __file__[-10:], sys.argv[1:], sys.path[0] == __file__[:-11])
            import helper
            raise ValueError("the end")
    """
    before = on_cpu(program, status=1, arguments=("--an", "argument"))
    after = on_cpu(program, "zero_grad", status=1, arguments=("--an", "argument"))
    assert after.change("zero_grad")
    assert before.stdout == after.stdout
    assert "No module named 'helper'" in after.stderr and "line 14" in after.stderr


def test_imported_modules_are_rewritten_and_installed_ones_are_not(on_cpu, tmp_path):
    program = """
        import pathlib, sys
        pathlib.Path("part.py").write_text(
            "def update(optimizer, loss):\\n    optimizer.zero_grad()\\n    loss.backward()\\n    optimizer.step()\\n")
        sys.path.insert(0, ".")
        import torch
        from part import update
        p = torch.nn.Parameter(torch.ones(2))
        update(torch.optim.SGD([p], lr=1), p.sum())
        print(p.grad)
    """
    assert on_cpu(program).stdout == "tensor([1., 1.])\n"
    after = on_cpu(program, "zero_grad")
    assert after.stdout == "None\n"
    assert after.change("zero_grad")["places"][0]["file"].endswith("part.py")


def test_a_change_with_nothing_to_do_says_so(on_cpu):
    document = on_cpu("print('hello')", "zero_grad,checkpoint,alloc=nonsense:1,batch=x,sdpa").document
    assert document["schema"] == "tonnage.changes/1" and document["patch"] is None
    assert all(not entry["applied"] and entry["why_not"] and not entry["patch"] for entry in document["changes"])


def test_two_changes_of_one_file_make_one_patch(on_cpu):
    program = """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=1, momentum=0.9)
        for step in range(2):
            y = model(torch.ones(1, 2))
            loss = y.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item(), model.weight.grad)
    """
    after = on_cpu(program, "zero_grad,foreach,release_outputs")
    assert all(entry["applied"] for entry in after.document["changes"])
    by_hand = on_cpu(program, patch=after.document["patch"])
    assert by_hand.stdout == after.stdout and by_hand.stdout.endswith("None\n")
    for entry in after.document["changes"]:
        on_cpu(program, patch=entry["patch"])


def test_the_survey_leaves_no_trace_in_a_graph_that_is_recorded(on_cpu):
    """torch.jit.trace records a model twice, and compares (TensorBoard's add_graph): of the first call nothing was looked at."""
    program = """
        import torch
        model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()) for _ in range(4)))
        torch.jit.trace(model, torch.ones(2, 8))
        model(torch.ones(2, 8)).sum().backward()
        print("traced")
    """
    outcome = on_cpu(program, "survey")
    assert outcome.stdout.split() == ["traced"], outcome.stderr
    assert outcome.document["survey"]["facts"]["blocks"] == 4


def test_the_survey_says_what_can_be_tried(on_cpu):
    document = on_cpu(
        """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader
        model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4)) for _ in range(3)), nn.BatchNorm1d(4))
        optimizer = torch.optim.AdamW(model.parameters())
        for x in DataLoader(torch.zeros(12, 4), batch_size=6):
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
        """,
        "survey",
    ).document
    facts = document["survey"]["facts"]
    assert facts["optimizers"] == ["AdamW"] and facts["batches"] == [6] and facts["batch_norm"]
    assert document["changes"] == [] and document["patch"] is None
    possible = {row["id"]: row for row in document["survey"]["possible"]}
    assert possible["accumulate"]["values"] == ["2"]
    assert possible["accumulate"]["results"] == "different_training", "smaller batches for batch normalisation"
    assert {"zero_grad", "foreach", "adam8bit", "offload_activations"} <= set(possible)
    assert not {"sgd_no_momentum", "sdpa", "kv_cache", "half_weights", "detach", "alloc"} & set(possible)


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("option", [False, True])
def test_what_only_evaluates_is_not_offered_updates(on_cpu, mode, option):
    """Its optimizer is made either way. In eval() a sample's results do not hang on its batch."""
    size = "parser.parse_args().batch_size" if option else "4"
    document = on_cpu(
        f"""
        import argparse, torch
        from torch import nn
        from torch.utils.data import DataLoader
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch-size", type=int, default=4)
        size = {size}
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout()).{mode}()
        optimizer = torch.optim.AdamW(model.parameters())
        def train():
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        with torch.no_grad():
            for x in DataLoader(torch.zeros(12, 4), batch_size=size):
                model(x)
        """,
        "survey",
    ).document
    possible = {row["id"]: row["results"] for row in document["survey"]["possible"]}
    assert not {"zero_grad", "foreach", "fused", "adam8bit", "offload_optimizer", "step_in_backward"} & set(possible)
    if option:
        assert possible["option_batch"] == ("same_up_to_rounding" if mode == "eval" else "different_training")
    assert ("evaluation_batch" in possible) != option


def test_empty_cache_goes_out_of_the_loop(saves):
    before, after, entry = saves(
        """
        import torch
        for step in range(3):
            x = torch.zeros(1 << 20, device="cuda")
            torch.cuda.empty_cache()
        print("done")
        """,
        "empty_cache_out_of_loop",
    )
    assert before.allocated == after.allocated


def test_the_promise_of_a_patch_is_the_change_itself(on_cpu):
    """A program that breaks under a change fails as it is, and the change is told with what it did."""
    program = """
        import torch
        from torch import nn
        model = nn.Linear(2, 2)
        model.eval()
        for step in range(2):
            loss = model(torch.ones(1, 2)).sum()
            def end():
                loss.backward()
            getattr(end, "__call__")()
    """
    assert on_cpu(program).status == 0
    broken = on_cpu(program.replace("loss.backward()", "getattr(loss, 'backward')()"), "no_grad", status=1)
    assert "does not require grad" in broken.stderr
    assert broken.document["changes"][0]["applied"]
