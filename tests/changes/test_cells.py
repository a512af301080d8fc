# SPDX-License-Identifier: Apache-2.0
"""Sources of notebooks' cells, and what edits of them make of a notebook. IPython is a function here; it runs in tests/vgpu/test_notebooks.py."""

import ast
import json
import random
import types

import pytest
from test_frame import load

cells, notebook, source, code = map(load, ("cells", "notebook", "source", "code"))


def transform(text):
    """What IPython does: magics become calls, empty lines at the top go."""
    rows = ["get_ipython()" if row.startswith(("%", "!")) else row for row in text.split("\n")]
    while rows and not rows[0].strip():
        del rows[0]
    return "\n".join(rows) + "\n"


def cell(text, before=0, number=1, index=0):
    return cells.Cell(types.SimpleNamespace(number=number, index=index, name=f"cell {number}", source=text), before, transform)


def test_places_are_those_of_the_cell():
    text = cell("%%time\n\nx = 1\n%pip install y\nz = f(x)", 2)
    assert [(type(node).__name__, node.lineno) for node in text.tree.body] == [("Assign", 3), ("Expr", 4), ("Assign", 5)]
    edits = source.Edits(text)
    edits.replace(text.calls()[-1], "g(x)")
    edits.insert_before(text.tree.body[2], "x += 1")
    changed, origins = source.render(text, [edits])
    assert changed == "%%time\n\nx = 1\n%pip install y\nx += 1\nz = g(x)"
    tree = source.changed_tree(text, changed, origins)
    assert [node.lineno for node in tree.body] == [3, 4, 5, 5] and ast.unparse(tree.body[-1]) == "z = g(x)"


def test_strings_keep_their_lines_behind_a_command():
    text = cell('!ls "a\nfor x in y:\n    f(\'\'\'one\ntwo\'\'\')')
    edits = source.Edits(text)
    edits.wrap(text.tree.body[1].body, "with z:")
    changed, origins = source.render(text, [edits])
    assert changed == '!ls "a\nfor x in y:\n    with z:\n        f(\'\'\'one\ntwo\'\'\')'


def test_lines_that_are_no_python_are_not_edited():
    text = cell("x = 1\n%pip install y")
    edits = source.Edits(text)
    edits.replace(text.calls()[0], "f()")
    with pytest.raises(source.Conflict):
        source.render(text, [edits])


def test_commands_over_several_lines_are_refused():
    with pytest.raises(SyntaxError):
        cells.Cell(types.SimpleNamespace(number=1, index=0, name="cell 1", source="!ls \\\n -l\nx = 1"), 0, lambda text: "get_ipython()\nx = 1\n")


def test_cells_share_their_names_and_imports(monkeypatch):
    monkeypatch.setattr(cells, "_run", [cell("import torch\nstep = 1")])
    text = cell("for x in y:\n    pass", number=2)
    edits = source.Edits(text)
    code.need_import(edits, "torch")
    code.need_import(edits, "math")
    assert source.render(text, [edits])[0] == "import math\nfor x in y:\n    pass"
    assert code.free_name(text, "step") == "step_"


# ---- the notebook ----

TEXTS = ["x = 1", "import torch\nx = 2\n", "", "print('é \\n \U0001f600')\n\n\nz", "'\"\\\\'\n\ty"]


def layouts(rows):
    """The same notebook as several programs write it."""
    cells = [{"cell_type": kind, "metadata": {"source": ["no"], "a": [1, {}]}, "source": text} for kind, text in rows]
    lists = [{**row, "source": row["source"].splitlines(True)} for row in cells]
    for each in (cells, lists):
        whole = {"metadata": {"cells": "no"}, "nbformat": 4, "cells": each}
        yield from (json.dumps(whole), json.dumps(whole, indent=1, ensure_ascii=False) + "\n", json.dumps(whole, indent=4, sort_keys=True))
    old = [{"cell_type": "code", "input": row["source"], "outputs": []} for row in lists]
    yield json.dumps({"nbformat": 3, "worksheets": [{"cells": old, "metadata": {}}]}, indent=2)


def sources_of(text):
    whole = json.loads(text)
    rows = whole["worksheets"][0]["cells"] if "worksheets" in whole else whole["cells"]
    return ["".join(row.get("source", row.get("input"))) for row in rows]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_but_the_sources_differs(seed, tmp_path, monkeypatch):
    chance = random.Random(seed)
    rows = [(chance.choice(["code", "markdown"]), chance.choice(TEXTS)) for _ in range(chance.randint(1, 6))]
    changed = {index: chance.choice(TEXTS) for index in chance.sample(range(len(rows)), chance.randint(1, len(rows)))}
    for number, text in enumerate(layouts(rows)):
        path = tmp_path / f"{number}.ipynb"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setattr(notebook.cells, "notebook", lambda name=path.name: (name, str(tmp_path)))
        own = [(types.SimpleNamespace(index=index, text=rows[index][1], path=f"cell {index}"), new) for index, new in changed.items()]
        [(plain, new)] = notebook.gathered(own)
        assert plain.text == text and sources_of(new) == [changed.get(index, old) for index, (_, old) in enumerate(rows)]
        back = [(types.SimpleNamespace(index=index, text=new_text, path=""), rows[index][1]) for index, new_text in changed.items()]
        path.write_text(new, encoding="utf-8")
        [(_, again)] = notebook.gathered(back)
        assert json.loads(again) == json.loads(text)
        if "\\u" not in text and new.isascii() == text.isascii() and all(rows[index][1] and new_text for index, new_text in changed.items()):
            assert again == text


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', '{"cells": [{"source": "other"}]}', '{"cells": []}', '{"worksheets": []}'])
def test_a_notebook_that_is_not_what_was_run(text, tmp_path, monkeypatch):
    (tmp_path / "n.ipynb").write_text(text)
    monkeypatch.setattr(notebook.cells, "notebook", lambda: ("n.ipynb", str(tmp_path)))
    own = [(cell("x = 1"), "x = 2")]
    assert notebook.gathered(own) == own, "each cell for itself"
