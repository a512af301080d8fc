# SPDX-License-Identifier: Apache-2.0
"""How long a sample is, by names and shapes alone, and the lengths that a data set or a sampler tells at no cost.

    measure(sample)     [(path, unit, count)]: what was found where; no value is looked at and nothing is computed
    Lengths             counts by index, of several paths; says which unit varies most
    told_by(dataset)    Lengths of a data set that knows them, or None
Imports no library: what the program has not imported, it does not use.
"""

import array
import collections.abc
import sys

UNITS = ("boxes", "nodes", "tokens", "frames", "voxels", "pixels", "characters", "values", "items")
_TOKENS = {"input_ids", "tokens", "token_ids", "ids", "labels", "decoder_input_ids", "src", "tgt", "source", "target_ids",
           "chosen_input_ids", "rejected_input_ids", "prompt_input_ids"}
_BOXES = {"boxes", "bboxes", "gt_bboxes", "annotations", "objects", "instances"}
_DEPTH = 3
_MAX_ITEMS = 32
_MAX_SAMPLES = 20_000_000
_CHANNELS = 4


# ---- one sample ----


def measure(sample):
    """[(path, unit, count)] of a sample."""
    found = []
    _look(sample, "", "", 0, found)
    return found


def _look(value, path, name, depth, found):
    shape = _shape(value)
    if shape is not None:
        _from_shape(shape, _is_integer(value), path, name, found)
    elif isinstance(value, str):
        found.append((path, "characters", len(value)))
    elif _is_picture(value):
        found.append((path, "pixels", value.size[0] * value.size[1]))
    elif isinstance(getattr(value, "num_nodes", None), int):
        found.append((path, "nodes", value.num_nodes))
    elif depth < _DEPTH:
        _look_inside(value, path, name, depth, found)


def _look_inside(value, path, name, depth, found):
    if isinstance(value, collections.abc.Mapping):
        for key, item in list(value.items())[:_MAX_ITEMS]:
            _look(item, "%s.%s" % (path, key), str(key), depth + 1, found)
    elif isinstance(value, (list, tuple)):
        if value and isinstance(value, list) and isinstance(value[0], (int, float)):
            found.append((path, _unit_of_row(isinstance(value[0], int), name), len(value)))
        elif value and isinstance(value, list) and (name in _BOXES or isinstance(value[0], (list, collections.abc.Mapping))):
            found.append((path, "boxes" if name in _BOXES or _has_box(value[0]) else "frames", len(value)))
        else:
            for i, item in enumerate(value[:_MAX_ITEMS]):
                _look(item, "%s[%d]" % (path, i), name, depth + 1, found)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        for key, item in list(vars(value).items())[:_MAX_ITEMS]:
            _look(item, "%s.%s" % (path, key), key.lstrip("_"), depth + 1, found)


def _shape(value):
    """The shape of a tensor or an array, or None."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype") and all(isinstance(size, int) for size in shape):
        return tuple(shape)
    return None


def _is_integer(value):
    text = str(value.dtype)
    return "int" in text or "bool" in text


def _is_picture(value):
    return isinstance(getattr(value, "size", None), tuple) and len(value.size) == 2 and isinstance(getattr(value, "mode", None), str)


def _has_box(value):
    return isinstance(value, collections.abc.Mapping) and any(key in value for key in ("bbox", "box", "segmentation"))


def _unit_of_row(integer, name):
    return "tokens" if name in _TOKENS or integer else "values"


def _from_shape(shape, integer, path, name, found):
    if len(shape) == 1:
        found.append((path, "boxes" if name in _BOXES else _unit_of_row(integer, name), shape[0]))
    elif len(shape) == 2:
        boxes = name in _BOXES or shape[1] in (4, 5)
        found.append((path, "boxes" if boxes else "nodes" if name == "x" else "frames", shape[0]))
        if not boxes and shape[1] > shape[0]:
            found.append((path + "/1", "frames", shape[1]))  # features first
    elif len(shape) == 3:
        sizes = shape[1:] if shape[0] <= _CHANNELS else shape[:2] if shape[2] <= _CHANNELS else None
        found.append((path, "pixels", sizes[0] * sizes[1]) if sizes else (path, "boxes" if name == "masks" else "voxels", shape[0] * (
            1 if name == "masks" else shape[1] * shape[2])))
    elif len(shape) == 4:
        if shape[0] <= _CHANNELS:
            found.append((path, "voxels", shape[1] * shape[2] * shape[3]))
        else:
            found.append((path, "frames", shape[0]))


# ---- many ----


class Lengths:
    """Counts of samples by index. -1: not looked at."""

    __slots__ = ("count", "columns", "looked", "by")

    def __init__(self, count, by):
        self.count = count  # samples
        self.columns = {}  # (path, unit) -> counts
        self.looked = 0
        self.by = by  # "columns", "sampler" or "samples": where they are from

    def column(self, path, unit):
        """The counts of one path, made where there are none."""
        return self.columns.get((path, unit)) or self.columns.setdefault((path, unit), array.array("q", [-1]) * self.count)

    def add(self, path, unit, counts):
        """A whole column."""
        self.columns[path, unit] = counts if isinstance(counts, array.array) else array.array("q", counts)
        self.looked = self.count

    def one(self):
        """(unit, counts by index) of the unit that varies most; None where nothing was found."""
        best = None
        for unit in UNITS:
            found = [counts for (_, its), counts in self.columns.items() if its == unit]
            counts = _longest_of([counts for counts in found if _variation(counts) > 1] or found)
            variation = _variation(counts) if counts is not None else 0
            if counts is not None and (best is None or variation > best[0]):
                best = variation, unit, counts
        return best[1:] if best else None


def _longest_of(columns):
    if len(columns) < 2:
        return columns[0] if columns else None
    return array.array("q", map(max, *columns))


def _variation(counts):
    known = sorted(count for count in counts if count >= 0)
    return known[-1] / max(1, known[len(known) // 2]) if known else 0


def size_of(dataset):
    """How many samples a map-style data set has, or None."""
    try:
        count = len(dataset)
    except Exception:
        return None
    return count if isinstance(count, int) and 0 < count <= _MAX_SAMPLES else None


# ---- what tells by itself ----


def told_by(dataset, depth=0):
    """Lengths of a data set that has them without calling the program's code; None otherwise."""
    count = size_of(dataset) if _is_known(dataset) else None
    if count is None or depth > _DEPTH:
        return None
    kind = type(dataset).__name__
    if kind == "Tensor":
        return _of_rows({"": dataset}, count)
    if kind == "TensorDataset":
        return _of_rows({"[%d]" % i: tensor for i, tensor in enumerate(dataset.tensors)}, count)
    if kind == "Subset":
        return _chosen(told_by(dataset.dataset, depth + 1), dataset.indices, count)
    if kind == "ConcatDataset":
        return _joined([told_by(part, depth + 1) for part in dataset.datasets], count)
    if isinstance(dataset, (list, tuple)):
        return _of_list(dataset, count)
    return _of_arrow(dataset, count)


def _is_known(dataset):
    """True for classes whose samples are known to come from what they hold, unchanged."""
    module = type(dataset).__module__
    if isinstance(dataset, (list, tuple)):
        return type(dataset) in (list, tuple)
    if module == "torch" and type(dataset).__name__ == "Tensor":
        return True
    return module == "torch.utils.data.dataset" or module == "datasets.arrow_dataset"


def _of_rows(tensors, count):
    """Samples that are rows of tensors, by path: all of one shape."""
    found = Lengths(count, "columns")
    for start, tensor in tensors.items():
        rows = []
        _from_shape(tuple(tensor.shape[1:]), _is_integer(tensor), start, "", rows)
        for path, unit, length in rows:
            found.add(path, unit, array.array("q", [length]) * count)
    found.looked = count
    return found


def _of_list(samples, count):
    found = Lengths(count, "columns")
    for i, sample in enumerate(samples):
        for path, unit, length in measure(sample):
            found.column(path, unit)[i] = length
    found.looked = count
    return found if found.columns else None


def _chosen(lengths, indices, count):
    if lengths is None:
        return None
    found = Lengths(count, lengths.by)
    for (path, unit), counts in lengths.columns.items():
        found.add(path, unit, array.array("q", (counts[int(i)] for i in indices)))
    found.looked = count
    return found


def _joined(parts, count):
    if not parts or any(part is None for part in parts):
        return None
    found = Lengths(count, "columns")
    start = 0
    for part in parts:
        for (path, unit), counts in part.columns.items():
            found.column(path, unit)[start:start + part.count] = counts
        start += part.count
    found.looked = count
    return found


def _of_arrow(dataset, count):
    """`datasets`: the offsets of Arrow's lists and texts; through an index mapping where there is one."""
    compute, table = sys.modules.get("pyarrow.compute"), getattr(getattr(dataset, "_data", None), "table", None)
    if compute is None or table is None:
        return None
    found = Lengths(count, "columns")
    for name in table.column_names:
        unit, lengths = _of_column(compute, table.column(name), name)
        if unit is None:
            continue
        if getattr(dataset, "_indices", None) is not None:
            lengths = lengths.take(dataset._indices.column(0))
        counts = compute.fill_null(lengths, 0).combine_chunks().cast("int64")
        counts = counts.combine_chunks() if hasattr(counts, "combine_chunks") else counts
        found.add("." + name, unit, array.array("q", counts.to_numpy(zero_copy_only=False).tobytes()))
    return found if found.columns else None


def _of_column(compute, column, name):
    kind = str(column.type)
    if kind in ("string", "large_string"):
        return "characters", compute.utf8_length(column)
    if kind.startswith(("list<", "large_list<")):
        inner = str(column.type.value_type)
        unit = "boxes" if name in _BOXES else "frames" if "list<" in inner else _unit_of_row("int" in inner, name)
        return unit, compute.list_value_length(column)
    return None, None


def told_by_sampler(sampler, count):
    """Lengths that a sampler, or one inside it, keeps for all samples; None otherwise."""
    for _ in range(_DEPTH):
        for name in ("lengths", "sizes"):
            kept = getattr(sampler, name, None)
            if isinstance(kept, (list, tuple)) and len(kept) == count and all(isinstance(each, int) for each in kept):
                found = Lengths(count, "sampler")
                found.add("", "items", kept)
                return found
        sampler = getattr(sampler, "batch_sampler", None) or getattr(sampler, "sampler", None)
    return None
