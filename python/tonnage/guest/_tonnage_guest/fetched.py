# SPDX-License-Identifier: Apache-2.0
"""Models that `tonnage fetch` has fetched without their weights are found where huggingface_hub looks for a model.

They lie in a store of Tonnage's own, in the form of the hub's cache, so that no other program takes a file without tensors for the whole one.
A model is taken from there in a run unless the hub's cache has all its weights; then all its files are, so that those of two revisions never meet.
What the repository does not have is then said to be missing, as offline, without asking the network. Functions are replaced as their module's
import ends, before anybody can bind them.
"""

import functools
import json
import os

from . import imports

_MANIFEST = ".tonnage-fetch.json"


def install(store):
    """store: the folder that `tonnage fetch` fills."""
    imports.watch("huggingface_hub.file_download", functools.partial(_patch_files, store))
    imports.watch("huggingface_hub._snapshot_download", functools.partial(_patch_snapshots, store))


class _Model:
    """A fetched model at one commit."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, _MANIFEST)) as file:
            manifest = json.load(file)
        self.weights = [row["path"] for row in manifest["files"] if row["what"] == "header"]
        self.repository = set(manifest["repository"])

    def path(self, filename):
        path = os.path.join(self.folder, *filename.split("/"))
        return path if os.path.isfile(path) else None


_models = {}


def _find(store, module, repo_id, revision, repo_type, cache_dir):
    """The fetched model that stands for a repository; None where there is none, or the hub's own cache has its weights."""
    if repo_type not in (None, "model") or not isinstance(repo_id, str):
        return None
    revision = revision or "main"
    key = (repo_id, revision, str(cache_dir))
    if key not in _models:
        _models[key] = _look(store, module, repo_id, revision, cache_dir)
    return _models[key]


def _look(store, module, repo_id, revision, cache_dir):
    folder = os.path.join(store, "models--" + repo_id.replace("/", "--"))
    snapshot = os.path.join(folder, "snapshots", revision)
    try:
        if not os.path.isdir(snapshot):
            with open(os.path.join(folder, "refs", revision)) as file:
                snapshot = os.path.join(folder, "snapshots", file.read())
        model = _Model(snapshot)
    except (OSError, ValueError, LookupError, TypeError):
        return None
    look = getattr(module.try_to_load_from_cache, "__wrapped__", module.try_to_load_from_cache)
    there = [look(repo_id, name, cache_dir=cache_dir, revision=revision) for name in model.weights]
    return None if there and all(isinstance(each, str) for each in there) else model


def _patch_files(store, module):
    try:
        _wrap_download(store, module)
        _wrap_look(store, module)
    except Exception:
        pass  # a version of another shape: models are found where they would be without us


def _wrap_download(store, module):
    original = module.hf_hub_download

    @functools.wraps(original)
    def hf_hub_download(*args, **kwargs):
        model, filename = None, None
        try:
            repo_id = args[0] if args else kwargs.get("repo_id")
            filename = args[1] if len(args) > 1 else kwargs.get("filename")
            if isinstance(filename, str) and not any(kwargs.get(name) for name in ("local_dir", "force_download", "dry_run")):
                filename = "/".join(part for part in (kwargs.get("subfolder"), filename) if part)
                model = _find(store, module, repo_id, kwargs.get("revision"), kwargs.get("repo_type"), kwargs.get("cache_dir"))
        except Exception:
            model = None
        if model is not None:
            path = model.path(filename)
            if path is not None:
                return path
            if filename not in model.repository:
                raise module.LocalEntryNotFoundError("%s has no %s (tonnage fetch)" % (repo_id, filename))
        return original(*args, **kwargs)

    hf_hub_download.__wrapped__ = original
    module.hf_hub_download = hf_hub_download


def _wrap_look(store, module):
    original = module.try_to_load_from_cache

    @functools.wraps(original)
    def try_to_load_from_cache(repo_id, filename, cache_dir=None, revision=None, repo_type=None):
        try:
            model = _find(store, module, repo_id, revision, repo_type, cache_dir)
            if model is not None and model.path(filename) is not None:
                return model.path(filename)
            if model is not None and filename not in model.repository:
                return module._CACHED_NO_EXIST
        except Exception:
            pass
        return original(repo_id, filename, cache_dir=cache_dir, revision=revision, repo_type=repo_type)

    try_to_load_from_cache.__wrapped__ = original
    module.try_to_load_from_cache = try_to_load_from_cache


def _patch_snapshots(store, module):
    try:
        from huggingface_hub import file_download

        original = module.snapshot_download

        @functools.wraps(original)
        def snapshot_download(*args, **kwargs):
            model = None
            try:
                if not any(kwargs.get(name) for name in ("local_dir", "force_download", "dry_run")):
                    repo_id = args[0] if args else kwargs.get("repo_id")
                    model = _find(store, file_download, repo_id, kwargs.get("revision"), kwargs.get("repo_type"), kwargs.get("cache_dir"))
            except Exception:
                model = None
            return model.folder if model is not None else original(*args, **kwargs)

        module.snapshot_download = snapshot_download
    except Exception:
        pass
