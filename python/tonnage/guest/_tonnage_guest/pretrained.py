# SPDX-License-Identifier: Apache-2.0
"""Weights that torch.hub would download, where it cannot: the tensors that the model was built with stand in for them.

torchvision builds a model and then has it take the weights of a URL (`vgg19(weights="DEFAULT")`); so do model_zoo.load_url and many repositories.
Without a network that ends the program, though the weights have the shapes that the model has already. So load_state_dict_from_url
returns a mapping without entries in the place of its error, and load_state_dict of a model leaves the model as it is when it is handed that one.
A program that looks into the mapping finds nothing there, as a filter by names does, or fails with KeyError and is told as failed.
"""

import ast
import functools
import threading
import urllib.error

from . import data_notes, imports, recode

_CONTAINERS = ("state_dict", "model", "model_state_dict", "net", "weights", "params", "params_ema", "module", "generator", "teacher")
_NAME = "_tonnage_pretrained"  # in the module of torch that the changed code runs in
_asking = threading.local()


class NotThere(dict):
    """What stands for the weights of a URL."""

    def __init__(self, url):
        super().__init__()
        self.url = url

    def __missing__(self, key):
        if key in _CONTAINERS:
            return self
        raise KeyError(key)


def install():
    """Waits for torch.hub, and for the class of models."""
    imports.watch("torch.hub", _watch)
    imports.watch("torch.nn.modules.module", _accept)


def is_asked_for():
    """True while a download is under way for which the model's tensors would stand in."""
    return getattr(_asking, "depth", 0) > 0


def _watch(module):
    original = module.load_state_dict_from_url

    @functools.wraps(original)
    def load_state_dict_from_url(url, *args, **kwargs):
        _asking.depth = getattr(_asking, "depth", 0) + 1
        try:
            return original(url, *args, **kwargs)
        except OSError as error:
            if not _is_of_the_network(error) or _is_for_the_card(*args, **kwargs):
                raise
            return NotThere(url)
        finally:
            _asking.depth -= 1

    module.load_state_dict_from_url = load_state_dict_from_url


def _is_of_the_network(error):
    """Not an answer of a server, nor a file that cannot be written."""
    return isinstance(error, (urllib.error.URLError, ConnectionError, TimeoutError)) and not isinstance(error, urllib.error.HTTPError)


def _is_for_the_card(model_dir=None, map_location=None, *args, **kwargs):
    """They would take memory there, and nobody knows how much before a model takes them."""
    return map_location is not None and "cpu" not in str(map_location)


class _Models:
    """What the changed load_state_dict asks."""

    @staticmethod
    def stays(model, state_dict):
        """True where a model keeps its tensors. The run's report says so."""
        if not isinstance(state_dict, NotThere):
            return False
        tensors = model.state_dict().values()
        data_notes.note("weights", sum(tensor.nbytes for tensor in tensors), len(tensors), None, state_dict.url)
        return True


def _accept(module):
    """torch's statements behind ours: `model.load_state_dict(load_state_dict_from_url(...))` looks the method up before anything is asked for."""
    recode.replace(module, module.Module.load_state_dict, _NAME, _Models, _around, ("self", "state_dict"))


def _around(body):
    place = body[0]
    answer = ast.Return(recode.expression("_IncompatibleKeys([], [])", place))
    return [recode.at(ast.If(recode.expression("%s.stays(self, state_dict)" % _NAME, place), [recode.at(answer, place)], []), place), *body]
