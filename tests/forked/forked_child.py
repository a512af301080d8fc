# SPDX-License-Identifier: Apache-2.0
"""In a fork server of the tests (../fork_servers.py): makes a forked process the program of a test.

The server's Python was given a script that only says what is to be imported. It has not begun to run that: a forked process
returns into the interpreter, which then runs whatever script its configuration names. Here another one is put there, so that no
frame, module or path tells the program that it was not started by itself.
"""

import atexit
import ctypes
import gc
import os
import sys
import types
import warnings
import weakref

import last_acts

_HERE = os.path.dirname(os.path.abspath(__file__))
_WORDS_OF_CONFIG = 64  # PyConfig is that long at least, within the interpreter's state
_HUGE, _COLLAPSE = 2 << 20, 25
_CWD = "TONNAGE_TEST_CWD"
_KEEP = "TONNAGE_TEST_KEEP"
_places = []  # in the configuration, once they are found: a rank is made of a process that has become its launcher
_of_server = []  # names of modules that were imported before the fork


@atexit.register  # before torch is imported, so this is called after all that the program and the hook have registered
def _leave_server_modules():
    for name in _of_server:
        sys.modules.pop(name, None)


def keep_imported():
    """In the server, when it has imported all: that is not taken apart at a forked process's end, which costs more than many a program,
    and copies the server's pages."""
    for finalizer in weakref.finalize._registry:  # of operators, which torch.library takes out of PyTorch's tables
        finalizer.atexit = False
    keep = ctypes.pythonapi.Py_IncRef
    keep.argtypes = [ctypes.py_object]
    for name, module in sys.modules.items():
        if isinstance(module, types.ModuleType) and name not in ("__main__", "sys", "builtins"):
            _of_server.append(name)
            keep(module)
            keep(vars(module))
    sys.path_importer_cache.clear()  # else each program takes it apart
    _use_huge_pages()
    last_acts.leave_out()


def _use_huge_pages():
    """Each fork copies the page table, which has one entry for 2 MiB then, not 512 (madvise(2), MADV_COLLAPSE). A kernel that has it not
    refuses, and nothing is lost."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/maps") as file:
        rows = [line.split() for line in file]
    for addresses, kind, *_, name in [row if len(row) > 5 else [*row, ""] for row in rows]:
        first, end = (int(address, 16) for address in addresses.split("-"))
        if kind == "rw-p" and name in ("", "[heap]"):
            for page in range(-(-first // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
                advise(page, _HUGE, _COLLAPSE)


def become(words):
    """words: the program's command line: Python, a script, -c and a text or -m and a module, its arguments. Its environment is there already."""
    os.chdir(os.environ.pop(_CWD))
    _filter_warnings(os.environ.get("PYTHONWARNINGS", ""))
    if os.environ.get("TONNAGE_WRITES") == "allow":
        _write_as_ever()
    gc.freeze()  # what was imported is looked at by no collection, nor unshared by one
    if words[1] in ("-c", "-m"):
        _set_script(words[1], words[2] + "\n" if words[1] == "-c" else words[2])
        sys.argv[:] = [words[1], *words[3:]]
    else:
        _set_script(words[1])
        sys.argv[:] = words[1:]
    sys.orig_argv[:] = words
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    sys.path_importer_cache.clear()  # a folder of that name may have been another
    for name in ("forked_child", "forked_ranks", "forked_several", "fork_imports", "last_acts"):
        sys.modules.pop(name, None)


def keep_changes():
    """What the changes tell outlives the run's folder, where a test says so. To be called when files are written as in the run."""
    keep = os.environ.pop(_KEEP, None)
    if keep is not None:
        path = os.path.join(os.environ["TONNAGE_RUN"], "changes")
        if os.path.isdir(path):
            os.rmdir(path)
        os.symlink(keep, path)


def _filter_warnings(text):
    """As Python does at its start."""
    options = [option for option in text.split(",") if option]
    sys.warnoptions += options
    warnings._processoptions(options)


def _write_as_ever():
    """Takes back what the hook has for files that go to the run's folder (its `files`)."""
    from _tonnage_guest import files, imports

    torch = sys.modules.get("torch")
    if torch is not None and torch._C.PyTorchFileWriter.__module__ == files.__name__:
        torch._C.PyTorchFileWriter = torch._C.PyTorchFileWriter.__base__
    if files._watch_safetensors in imports._watched.get("safetensors", ()):
        imports._watched["safetensors"].remove(files._watch_safetensors)
    for name in ("safetensors", "safetensors.torch"):
        function = getattr(sys.modules.get(name), "serialize_file", None)
        if hasattr(function, "__wrapped__"):
            sys.modules[name].serialize_file = function.__wrapped__


# ---- the interpreter's configuration ----


def _set_script(script, text=None):
    """What is run instead: a file, or the text of -c or the module of -m, whose word sys.argv has then."""
    words = _configuration()
    if not _places:
        _places.extend(_find_places(words))
    at, first = _places
    words[at - 2], words[at - 1], words[at] = 0, 0, 0
    if text is None:
        words[at] = _copy(os.path.join(os.getcwd(), script))
    else:
        words[at - (2 if script == "-c" else 1)] = _copy(text)
    ctypes.c_size_t.from_address(words[first]).value = _copy(script)  # argv.items[0]


def _configuration():
    python = ctypes.pythonapi
    python.PyInterpreterState_Get.restype = ctypes.c_void_p
    python._PyInterpreterState_GetConfig.restype = ctypes.c_void_p
    python._PyInterpreterState_GetConfig.argtypes = [ctypes.c_void_p]
    config = python._PyInterpreterState_GetConfig(python.PyInterpreterState_Get())
    return (ctypes.c_size_t * _WORDS_OF_CONFIG).from_address(config)


def _find_places(words):
    """Where run_filename stands in the configuration of the server's script, behind run_command and run_module; and where argv.items does."""
    old = sys.argv[0]
    memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        names = [i for i, word in enumerate(words) if _is_text(memory, word, old)]
        lists = [i for i in range(1, len(words)) if words[i - 1] == 1 and _is_text(memory, _word_at(memory, words[i]), old)]
    finally:
        os.close(memory)
    if len(names) != 1 or len(lists) != 1 or list(words[names[0] - 2:names[0]]) != [0, 0]:
        raise RuntimeError("this Python's configuration does not look as it should: %r, %r" % (names, lists))
    return names[0], lists[0]


def _read(memory, address, count):
    """Bytes at an address, which need not be one."""
    try:
        return os.pread(memory, count, address) if 4096 <= address < 1 << 47 else b""
    except OSError:
        return b""


def _word_at(memory, address):
    return int.from_bytes(_read(memory, address, ctypes.sizeof(ctypes.c_size_t)), "little")


def _is_text(memory, address, text):
    wanted = bytes(ctypes.create_unicode_buffer(text))
    return _read(memory, address, len(wanted)) == wanted


def _copy(text):
    """A copy that the interpreter may free."""
    raw = bytes(ctypes.create_unicode_buffer(text))
    allocate = ctypes.pythonapi.PyMem_RawMalloc
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = [ctypes.c_size_t]
    address = allocate(len(raw))
    ctypes.memmove(address, raw, len(raw))
    return address
