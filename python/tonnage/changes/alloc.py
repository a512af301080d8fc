# SPDX-License-Identifier: Apache-2.0
"""Settings of PyTorch's caching allocator, through the environment.

A setting is checked before: PyTorch ends the program for an unknown key or a value out of range, and some go badly
together.
"""

import os
import sys

from _tonnage_guest import cells, origin

from . import hooks

_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_LARGE_SEGMENT_MB = 20


class Bad(ValueError):
    """A setting that PyTorch refuses or that is known to hurt."""


def install(change):
    """Sets the variables; torch reads them when it first needs them."""
    try:
        settings = parse(change.value or "")
        check(settings)
        merged = merge(next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), ""), change.value)
    except Bad as error:
        change.cannot(str(error))
        return
    torch = sys.modules.get("torch")
    if torch is not None:
        if not _set_in_torch(torch, merged):
            change.cannot("torch has read its settings already")
            return
    for name in _VARIABLES:
        os.environ[name] = merged
    change.environment = {"PYTORCH_CUDA_ALLOC_CONF": merged}
    change.how = _how(_VARIABLES[1], merged)
    hooks.on_torch(change.guarded(lambda module: _name_for(change, module, merged)))


def _name_for(change, torch, merged):
    """Newer releases read the variable without CUDA in its name, and warn of the other."""
    if not torch.version.cuda and not getattr(torch.version, "hip", None):
        change.cannot("this torch has no CUDA")
        return
    name = _VARIABLES[0] if _version(torch) >= (2, 10) else _VARIABLES[1]
    change.environment = {name: merged}
    change.how = _how(name, merged)
    change.note(None, "%s=%s" % (name, merged))
    change.effect()


def _how(name, merged):
    runs_cells = bool(sys.argv) and origin.kind_of_file(os.path.abspath(sys.argv[0])) is origin.OWN  # the runner of a notebook
    if runs_cells or cells.shell() is not None:
        return "Put `%%env %s=%s` at the top of the notebook's first cell, before torch is imported." % (name, merged)
    return "Set %s=%s before the program starts." % (name, merged)


def _version(torch):
    parts = torch.__version__.split("+")[0].split(".")[:2]
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in parts)


def _set_in_torch(torch, text):
    """A process that has only imported torch can still be told, before CUDA is used."""
    core = getattr(torch, "_C", None)
    if core is None or torch.cuda.is_initialized():
        return False
    for name in ("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings"):
        function = getattr(core, name, None)
        if function is not None:
            function(text)
            return True
    return False


def parse(text):
    """[(key, value)] of a setting; commas inside brackets do not separate."""
    found, depth, piece = [], 0, ""
    for letter in text + ",":
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            if piece.strip():
                found.append(_pair(piece.strip()))
            piece = ""
        else:
            piece += letter
    if depth or not found:
        raise Bad("%r is no setting of the allocator" % text)
    return found


def _pair(piece):
    key, colon, value = piece.partition(":")
    if not colon or not value:
        raise Bad("%r has no value" % piece)
    return key.strip(), value.strip()


def merge(old, new):
    """The user's own settings with the tried ones in their place."""
    tried = parse(new)
    keys = {key for key, value in tried}
    kept = [pair for pair in (parse(old) if old.strip() else []) if pair[0] not in keys]
    merged = kept + tried
    check(merged)
    return ",".join("%s:%s" % pair for pair in merged)


def _boolean(value):
    if value not in ("True", "False"):
        raise Bad("must be True or False")


def _whole(value):
    if not value.isdigit():
        raise Bad("must be a whole number")
    return int(value)


def _megabytes(least):
    def check_value(value):
        if _whole(value) < least:
            raise Bad("must be at least %d" % least)

    return check_value


def _fraction(value):
    try:
        inside = 0.0 < float(value) < 1.0
    except ValueError:
        inside = False
    if not inside:
        raise Bad("must be a fraction between 0 and 1")


def _share(value):
    try:
        inside = 0.0 <= float(value) <= 1.0
    except ValueError:
        inside = False
    if not inside:
        raise Bad("must be a fraction from 0 to 1")


def _divisions(value):
    if not value.startswith("["):
        _power_of_two(value)
        return
    for piece in value.strip("[]").split(","):
        boundary, colon, count = piece.strip().partition(":")
        if not colon or (boundary != ">" and not _is_power_of_two(boundary)):
            raise Bad("must be a power of two, or [size in MiB:divisions,...,>:divisions]")
        _power_of_two(count)


def _is_power_of_two(value):
    return value.isdigit() and int(value) > 0 and int(value) & (int(value) - 1) == 0


def _power_of_two(value):
    if not _is_power_of_two(value):
        raise Bad("must be a power of two")


def _one_of(*names):
    def check_value(value):
        if value not in names:
            raise Bad("must be one of %s" % ", ".join(names))

    return check_value


def _threads(value):
    if not _is_power_of_two(value) or int(value) > 128:
        raise Bad("must be a power of two up to 128")


_KEYS = {
    "max_split_size_mb": _megabytes(_LARGE_SEGMENT_MB + 1),
    "max_non_split_rounding_mb": _megabytes(_LARGE_SEGMENT_MB + 1),
    "large_segment_size_mb": _megabytes(11),
    "garbage_collection_threshold": _fraction,
    "roundup_power2_divisions": _divisions,
    "expandable_segments": _boolean,
    "backend": _one_of("native", "cudaMallocAsync"),
    "release_lock_on_cudamalloc": _boolean,
    "release_lock_on_hipmalloc": _boolean,
    "pinned_use_cuda_host_register": _boolean,
    "pinned_use_background_threads": _boolean,
    "pinned_num_register_threads": _threads,
    "pinned_reserve_segment_size_mb": _megabytes(1),
    "pinned_free_catch_all": _boolean,
    "graph_capture_record_stream_reuse": _boolean,
    "per_process_memory_fraction": _share,
    "throw_on_cudamalloc_oom": _boolean,
}


def check(settings):
    """Raises Bad for what PyTorch refuses and for combinations that are known to hurt."""
    values = dict(settings)
    if len(values) != len(settings):
        raise Bad("a key is set twice")
    for key, value in settings:
        if key not in _KEYS:
            raise Bad("PyTorch's allocator knows no setting %s" % key)
        try:
            _KEYS[key](value)
        except Bad as error:
            raise Bad("%s:%s %s" % (key, value, error)) from None
    _check_together(values)


def _check_together(values):
    expandable = values.get("expandable_segments") == "True"
    if expandable and "max_split_size_mb" in values:
        raise Bad("expandable_segments with max_split_size_mb lets reserved memory grow without bound (pytorch#123548)")
    if values.get("backend") == "cudaMallocAsync" and len(values) > 1:
        raise Bad("backend:cudaMallocAsync takes none of the other settings")
    large = values.get("large_segment_size_mb")
    for key in ("max_split_size_mb", "max_non_split_rounding_mb"):
        if large is not None and key in values and int(values[key]) < int(large):
            raise Bad("%s must be at least large_segment_size_mb" % key)
