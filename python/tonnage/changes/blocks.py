# SPDX-License-Identifier: Apache-2.0
"""The repeated blocks of a model: modules of one class that stand side by side in a ModuleList or Sequential, or as numbered
attributes of one module (`attention_0`, `attention_1`)."""

import re


def of(root):
    """(name, module) of the blocks of the kind that repeats most, by parameters; [] if none repeats. Blocks of another kind in which most of these
    stand come first: a layer that they share with a head may weigh more than they do."""
    import torch

    kinds = {}
    for name, module in root.named_modules():
        if not isinstance(module, torch.nn.ModuleDict):
            listed = isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential))
            for key, child in module.named_children() if listed else _numbered(module):
                if not isinstance(child, torch.nn.ModuleList) and (next(child.children(), None) or _is_whole(child)):
                    kinds.setdefault(_kind(child), []).append(("%s.%s" % (name, key) if name else key, child))
    repeated = [found for found in map(_outermost, kinds.values()) if len(found) > 1]
    heaviest = max(repeated, key=_weight, default=[])
    around = [found for found in repeated if found is not heaviest and _holds_most(found, heaviest)]
    return max(around, key=_weight, default=heaviest)


def _holds_most(found, others):
    """True when most of the others are parts of these, by their number and by their parameters: the first and the last stage of a ResNet-50 are of one
    kind and have most of its parameters, and six of its sixteen blocks."""
    inside = _inside(others, found)
    return 2 * len(inside) > len(others) and 2 * _weight(inside) > _weight(others)


def _inside(found, others):
    """Those that are parts of one of the others."""
    return [(name, module) for name, module in found if any(name.startswith(other + ".") for other, _ in others)]


def _numbered(module):
    """Children whose names differ in the number at their end alone, where there are several of them, all of one class."""
    stems = {}
    for key, child in module.named_children():
        found = re.fullmatch(r"(.*\D)\d+", key)
        if found is not None:
            stems.setdefault((found[1], _kind(child)), []).append((key, child))
    return [pair for pairs in stems.values() if len(pairs) > 1 for pair in pairs]


def is_list_of(found, root, path):
    """True when the module of this name can be walked over, and gives these blocks and nothing else."""
    import torch

    whole = root.get_submodule(path)
    blocks = {id(module) for name, module in found}
    return isinstance(whole, (torch.nn.ModuleList, torch.nn.Sequential)) and all(id(child) in blocks for child in whole)


def _kind(module):
    """A class, and for containers what they contain."""
    if type(module).__name__ == "Sequential":
        return (type(module),) + tuple(type(child) for child in module.children())
    return type(module)


def _is_whole(module):
    """A block without parts: the user's own layer."""
    return not type(module).__module__.startswith("torch.nn.") and next(module.parameters(), None) is not None


def _outermost(found):
    names = [name for name, module in found]
    return [(name, module) for name, module in found
            if not any(name.startswith(other + ".") for other in names if other != name)]


def _weight(found):
    return sum(parameter.numel() for name, module in found for parameter in module.parameters())


def common_path(found):
    """The name of the list that holds all blocks, or None when there are several."""
    lists = {name.rpartition(".")[0] for name, module in found}
    return lists.pop() if len(lists) == 1 else None
