# SPDX-License-Identifier: Apache-2.0
"""The program of `tonnage run notebook.ipynb`: runs the cells of a notebook as Jupyter does (doc/design/0033-notebooks.md).

    run_cells.py [--cells LIST] [--keep-going] [--this-python] NOTEBOOK

Executed by the notebook's own Python, of which it uses what is installed: nbclient with ipykernel, else IPython in this process. The
standard library is all that it needs itself. What it cannot do is left for the supervisor in one line, with status 2.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile

_OWN = os.path.abspath(__file__)
_LONGEST_FOLDER = 80  # of sockets: a path of theirs has at most 107 bytes, unix(7)
_RESPAWNED = "TONNAGE_NOTEBOOK_PYTHON"  # this process was started as the Python of the kernelspec


class Wrong(Exception):
    """What keeps a notebook from being run, in one line."""


def main(words):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--cells")
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--this-python", action="store_true")
    parser.add_argument("notebook")
    options = parser.parse_args(words)
    try:
        notebook = _read(options.notebook)
        order = _order(_cells_of(notebook), options.cells)
        spec = _kernelspec(notebook)
        if not options.this_python:
            _become(spec)
        return _run(options, notebook, order, spec)
    except Wrong as wrong:
        return _give_up(str(wrong))


def _run(options, notebook, order, spec):
    goes_on = "?" if options.keep_going else ""
    wanted = ",".join("%d@%d%s" % (number, index, "!" if _may_fail(cell) else goes_on) for number, index, cell in order)
    told = {"TONNAGE_CELLS": wanted, "TONNAGE_NOTEBOOK": options.notebook, "TONNAGE_NOTEBOOK_FOLDER": os.getcwd()}
    folder = os.path.dirname(os.path.abspath(options.notebook))
    if _has("nbclient", "nbformat", "ipykernel", "jupyter_client"):
        return _run_in_kernel(options, order, {**_environment(spec), **told}, folder)
    if _has("IPython"):
        os.environ.update(told)
        return _run_here(options, order, folder)
    raise Wrong("%s has neither ipykernel nor IPython: install them there (%s -m pip install ipykernel nbclient), or name the notebook's "
                "Python with --python" % (sys.executable, sys.executable))


def _give_up(words):
    run = os.environ.get("TONNAGE_RUN")
    if not run:
        sys.stderr.write("tonnage: %s\n" % words)
        return 2
    with open(os.path.join(run, "notebook-error"), "w", encoding="utf-8") as file:
        file.write(words)
    return 2


def _has(*names):
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in names)


# ---- the notebook ----


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            notebook = json.load(file)
    except OSError as error:
        raise Wrong("%s cannot be read: %s" % (path, error.strerror)) from None
    except ValueError:
        raise Wrong("%s is not a notebook: it is not JSON" % path) from None
    if not isinstance(notebook, dict) or not isinstance(_raw_cells(notebook), list):
        raise Wrong("%s is not a notebook: it has no cells" % path)
    return notebook


def _raw_cells(notebook):
    if "cells" in notebook:
        return notebook["cells"]
    sheets = notebook.get("worksheets")  # nbformat 3
    return sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None


def _text(cell):
    source = cell.get("source", cell.get("input", ""))
    return "".join(source) if isinstance(source, list) else str(source)


def _tags(cell):
    tags = (cell.get("metadata") or {}).get("tags")
    return tags if isinstance(tags, list) else []


def _may_fail(cell):
    return "raises-exception" in _tags(cell)


def _cells_of(notebook):
    """(number, index in the notebook, cell) of the code cells that Jupyter runs."""
    rows = [(index, cell) for index, cell in enumerate(_raw_cells(notebook)) if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    rows = [(index, cell) for index, cell in rows if _text(cell).strip() and "skip-execution" not in _tags(cell)]
    return [(number, index, cell) for number, (index, cell) in enumerate(rows, 1)]


def _order(cells, wish):
    """The cells in the order that `--cells 1-4,4` asks for."""
    if not cells:
        raise Wrong("the notebook has no code cells")
    if wish is None:
        return cells
    order = []
    for part in wish.split(","):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if numbers[-1] > len(cells):
            raise Wrong("--cells %s: the notebook has %d code cell%s that %s run" % (
                wish, len(cells), "" if len(cells) == 1 else "s", "is" if len(cells) == 1 else "are"))
        order.extend(cells[number - 1] for number in numbers)
    return order


# ---- whose Python ----


def _kernelspec(notebook):
    """The contents of the kernelspec that the notebook names, with its "name"; {} where it names none, or it is not installed."""
    metadata = notebook.get("metadata") or {}
    wish = metadata.get("kernelspec") or {}
    language = (metadata.get("language_info") or {}).get("name") or wish.get("language") or "python"
    if str(language).lower() not in ("python", "ipython"):
        raise Wrong("the notebook's kernel is for %s: only Python's can be run" % language)
    name = wish.get("name")
    for folder in _folders() if isinstance(name, str) and "/" not in name else ():
        try:
            with open(os.path.join(folder, "kernels", name, "kernel.json"), encoding="utf-8") as file:
                return dict(json.load(file), name=name)
        except (OSError, ValueError):
            continue
    return {"name": name} if name else {}


def _folders():
    """Where Jupyter looks, in its order."""
    home = os.path.expanduser("~")
    yield from filter(None, os.environ.get("JUPYTER_PATH", "").split(os.pathsep))
    own = [os.path.join(sys.prefix, "share", "jupyter")]
    user = [os.environ.get("JUPYTER_DATA_DIR") or os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "jupyter")]
    yield from own + user if sys.prefix != sys.base_prefix else user + own
    yield from ("/usr/local/share/jupyter", "/usr/share/jupyter")


def _become(spec):
    """Goes on as the Python that the kernelspec names. "python3" is this one, wherever it can run a notebook, as in Jupyter."""
    words = spec.get("argv") or []
    python = words[0] if words and isinstance(words[0], str) else None
    if os.environ.pop(_RESPAWNED, None) or python is None:
        if spec.get("name") not in (None, "python", "python3") and python is None:
            sys.stderr.write("tonnage: the notebook's kernel %s is not installed: its cells are run by %s (--python names another)\n" % (
                spec["name"], sys.executable))
        return
    native = spec["name"] in ("python", "python3") and _has("IPython")
    if native or not os.path.isabs(python) or not os.access(python, os.X_OK) or _is_this(python):
        return
    os.environ[_RESPAWNED] = "1"
    os.execv(python, [python, _OWN, *sys.argv[1:]])


def _is_this(python):
    """The same environment: links to one interpreter from two environments are two."""
    return os.path.abspath(python) == os.path.abspath(sys.executable)


# ---- a kernel ----


def _run_in_kernel(options, order, environment, folder):
    import nbformat
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    own = KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], display_name="Python", language="python",
                     env=environment)  # fmt: skip

    class OwnSpecs(KernelSpecManager):
        def get_kernel_spec(self, kernel_name):
            return own

    class Client(NotebookClient):
        def process_message(self, msg, cell, cell_index):
            _show(msg)
            return super().process_message(msg, cell, cell_index)

    with open(options.notebook, encoding="utf-8") as file:
        notebook = nbformat.read(file, as_version=4)
    client = Client(notebook, timeout=None, allow_errors=options.keep_going, resources={"metadata": {"path": folder}})
    client.km = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=OwnSpecs())  # the client's own: it ends the kernel
    sockets = tempfile.mkdtemp()
    if len(sockets) < _LONGEST_FOLDER:  # ports are found and let go before the kernel takes them: another kernel may come first
        client.km.transport, client.km.ip = "ipc", os.path.join(sockets, "kernel")
    number = 0
    try:
        with client.setup_kernel(cwd=folder):
            for number, index, _ in order:
                client.execute_cell(notebook.cells[index], index)
    except CellExecutionError:
        return 1  # shown as it came
    except DeadKernelError:
        sys.stderr.write("tonnage: the notebook's kernel died in cell %d\n" % number)
        return 1
    finally:
        shutil.rmtree(sockets, ignore_errors=True)
    return 0


def _environment(spec):
    found = spec.get("env")
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _show(message):
    """What a cell prints goes where the runner prints; so do its results and its error."""
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        stream = sys.stderr if content["name"] == "stderr" else sys.stdout
        stream.write(content["text"])
        stream.flush()
    elif kind in ("execute_result", "display_data"):
        text = content.get("data", {}).get("text/plain")
        if text is not None:
            print(text, flush=True)
    elif kind == "error":
        text = "\n".join(content.get("traceback", ())) + "\n"
        sys.stderr.write(text if sys.stderr.isatty() else re.sub(r"\x1b\[[0-9;]*m", "", text))
        sys.stderr.flush()


# ---- this process ----


def _run_here(options, order, folder):
    from IPython.core.interactiveshell import InteractiveShell

    os.chdir(folder)
    sys.path.insert(0, "")  # as a kernel's
    shell = InteractiveShell.instance()
    for _, _, cell in order:
        result = shell.run_cell(_text(cell), store_history=True)
        if not result.success and not options.keep_going and not _may_fail(cell):
            return 1
    return 0


if __name__ == "__main__":
    # The folder of this file is nobody's to import from.
    sys.path[:] = [entry for entry in sys.path if entry != os.path.dirname(_OWN)]
    sys.exit(main(sys.argv[1:]))
