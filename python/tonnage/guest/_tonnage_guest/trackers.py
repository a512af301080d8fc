# SPDX-License-Identifier: Apache-2.0
"""Experiment trackers stay offline although the program says otherwise, and what would be put into a store elsewhere is
not put there.

The supervisor sets the variables that trackers document (src/supervise/environment.c); a program may overrule them in its code.
So the functions that begin a run are given the tracker's own offline mode as their modules' import ends. A tracker that is
switched off altogether stays off. Nothing here may raise: a library of another shape is left to the network wall.
"""

import functools
import os

from . import held, imports


def install():
    """Waits for the libraries that are known."""
    for name, patch in _PATCHES.items():
        imports.watch(name, functools.partial(_try, patch))


def _try(patch, module):
    try:
        patch(module)
    except Exception:
        pass


def _wrap(owner, name, make):
    """Replaces owner.name by make(original)."""
    original = getattr(owner, name, None)
    if original is None:
        return
    plain = owner.__dict__.get(name)
    wrapped = functools.wraps(original)(make(original))
    setattr(owner, name, staticmethod(wrapped) if isinstance(plain, (staticmethod, classmethod)) else wrapped)


def _with_mode(library, offline, off):
    """For a function with an argument `mode`: anything but the modes in `off` becomes `offline`."""

    def make(original):
        def call(*args, **kwargs):
            if str(kwargs.get("mode") or "").lower() not in (*off, offline):
                if kwargs.get("mode") is not None:
                    held.count(library, original.__name__)
                kwargs["mode"] = offline
            return original(*args, **kwargs)

        return call

    return make


# ---- Weights & Biases ----


def _wandb(module):
    def make(original):
        def init(*args, **kwargs):
            off = "disabled" in (kwargs.get("mode"), os.environ.get("WANDB_MODE"))
            asked = kwargs.get("mode") or os.environ.get("TONNAGE_WANDB") or "online"
            online = asked not in ("offline", "dryrun")
            settings = kwargs.get("settings")
            said = settings.get("mode") if isinstance(settings, dict) else getattr(settings, "mode", None)
            off = off or said == "disabled"
            if not off:
                os.environ["WANDB_MODE"] = "offline"
                if kwargs.get("mode") is not None:
                    kwargs["mode"] = "offline"
                if isinstance(settings, dict):
                    kwargs["settings"] = dict(settings, mode="offline")
                elif settings is not None:
                    online = online or said in ("online", "shared", "run")
                    settings.mode = "offline"
                kwargs.setdefault("mode", "offline")
            if online and not off:
                held.count("wandb", "init")
            return original(*args, **kwargs)

        return init

    _wrap(module, "init", make)


# ---- MLflow ----


def _is_server(uri):
    return isinstance(uri, str) and uri.startswith(("http:", "https:", "databricks", "uc:"))


def _local_store(uri):
    if not _is_server(uri):
        return uri
    return "sqlite:///%s/mlflow.db" % held.folder("mlflow")


def _mlflow(module):
    def first(original):
        def call(uri=None, *args, **kwargs):
            if _is_server(uri):
                held.count("mlflow", original.__name__)
            return original(_local_store(uri), *args, **kwargs)

        return call

    def result(original):
        def call(*args, **kwargs):
            uri = original(*args, **kwargs)
            if _is_server(uri):
                held.count("mlflow", original.__name__)
            return _local_store(uri)

        return call

    for name in ("set_tracking_uri", "set_registry_uri", "_get_store"):
        _wrap(module, name, first)
    for name in ("get_tracking_uri", "_resolve_tracking_uri", "get_registry_uri", "_resolve_registry_uri",
                 "_get_registry_uri_from_context"):  # fmt: skip
        _wrap(module, name, result)


# ---- others ----


def _neptune(module):
    for name in ("init_run", "init_model", "init_model_version", "init_project"):
        _wrap(module, name, _with_mode("neptune", "offline", ("debug", "read-only")))
    _wrap(module, "Run", lambda original: _class_with_mode(original, "neptune", "offline", ("debug", "read-only")))


def _class_with_mode(cls, library, offline, off):
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        if str(kwargs.get("mode") or "").lower() not in (*off, offline):
            held.count(library, cls.__name__)
            kwargs["mode"] = offline
        original(self, *args, **kwargs)

    cls.__init__ = __init__
    return cls


def _neptune_run(module):
    for name in ("Run", "Model", "ModelVersion", "Project"):
        cls = getattr(module, name, None)
        if isinstance(cls, type) and cls.__module__ == module.__name__:
            _class_with_mode(cls, "neptune", "offline", ("debug", "read-only"))


def _swanlab(module):
    _wrap(module, "init", _with_mode("swanlab", "offline", ("disabled", "local")))


def _comet(module):
    """Experiment is the class that is online from the start; start() and its like decide by `online`."""
    offline, existing = getattr(module, "OfflineExperiment", None), getattr(module, "ExistingOfflineExperiment", None)
    for name, other in (("Experiment", offline), ("ExistingExperiment", existing), ("APIExperiment", None)):
        if hasattr(module, name) and other is not None:
            setattr(module, name, _counted(other, "comet_ml", name))

    def make(original):
        def start(*args, **kwargs):
            if kwargs.get("online"):
                held.count("comet_ml", "start")
            kwargs["online"] = False
            return original(*args, **kwargs)

        return start

    _wrap(module, "start", make)


def _counted(cls, library, name):
    class Experiment(cls):
        def __init__(self, *args, **kwargs):
            held.count(library, name)
            super().__init__(*args, **kwargs)

    Experiment.__name__ = Experiment.__qualname__ = cls.__name__
    Experiment.__module__ = cls.__module__
    return Experiment


def _clearml(module):
    task = module.Task
    original = task.__dict__["set_offline"].__func__

    def set_offline(cls, offline_mode=False):
        if not offline_mode:
            held.count("clearml", "set_offline")
        return original(cls, True)

    task.set_offline = classmethod(functools.wraps(original)(set_offline))
    init = task.__dict__["init"].__func__

    def begin(cls, *args, **kwargs):
        original(cls, True)
        return init(cls, *args, **kwargs)

    task.init = classmethod(functools.wraps(init)(begin))


def _aim(module):
    def make(original):
        def __init__(self, path, *args, **kwargs):
            if path.startswith(("aim://", "ssh://")):
                held.count("aim", "Repo")
                path = held.folder("aim")
                kwargs["init"] = True
            original(self, path, *args, **kwargs)

        return __init__

    _wrap(module.Repo, "__init__", make)

    def keep(original):
        def call(path, *args, **kwargs):
            if isinstance(path, str) and path.startswith(("aim://", "ssh://")):
                held.count("aim", "Repo")
                path = held.folder("aim")
                kwargs["init"] = True
            return original(path, *args, **kwargs)

        return call

    if "from_path" in module.Repo.__dict__:
        _wrap(module.Repo, "from_path", keep)


# ---- stores: what reads has one of these verbs ----

_READING = ("Get", "Head", "List", "Describe", "Assume", "Select", "Batch" + "Get", "Lookup", "Query", "Scan", "Search",
            "Receive", "Decrypt", "Restore")  # fmt: skip


def _held_answer(operation, parameters):
    """As much of an answer as callers look at."""
    return {
        "ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RequestId": "held back", "RetryAttempts": 0},
        "ETag": '"%s"' % ("0" * 32), "UploadId": "held-back", "CopyPartResult": {"ETag": '"%s"' % ("0" * 32)},
        "CopyObjectResult": {"ETag": '"%s"' % ("0" * 32)}, "Location": "", "Deleted": [],
    }  # fmt: skip


def _botocore(module):
    original = module.BaseClient._make_api_call

    @functools.wraps(original)
    def call(self, operation, parameters):
        if operation.startswith(_READING) or self.meta.service_model.service_name in ("sts", "sso", "sso-oidc"):
            return original(self, operation, parameters)
        held.count(self.meta.service_model.service_name, operation)
        return _held_answer(operation, parameters)

    module.BaseClient._make_api_call = call


def _aiobotocore(module):
    original = module.AioBaseClient._make_api_call

    @functools.wraps(original)
    async def call(self, operation, parameters):
        if operation.startswith(_READING) or self.meta.service_model.service_name in ("sts", "sso", "sso-oidc"):
            return await original(self, operation, parameters)
        held.count(self.meta.service_model.service_name, operation)
        return _held_answer(operation, parameters)

    module.AioBaseClient._make_api_call = call


def _taken(headers):
    """What a resumable upload's server answers: everything up to this piece's end has come. A client that is told less sends
    the rest again, without end."""
    piece = str((headers or {}).get("Content-Range", ""))  # "bytes 0-99/100", "bytes 0-99/*" or "bytes */100"
    span, _, total = piece.partition(" ")[2].partition("/")
    end = span.partition("-")[2] if "-" in span else str(int(total) - 1) if total.isdigit() else ""
    return {"Range": "bytes=0-%s" % end} if end.isdigit() else {}


def _gcsfs(module):
    original = module.GCSFileSystem._request

    @functools.wraps(original)
    async def request(self, method, path, *args, **kwargs):
        if method.upper() in ("GET", "HEAD", "OPTIONS"):
            return await original(self, method, path, *args, **kwargs)
        held.count("gcsfs", method)
        headers = {"Location": "https://storage.googleapis.com/held-back", **_taken(kwargs.get("headers"))}
        return 200, headers, None, b'{"name": "held-back", "size": "0", "done": true, "resource": {}}'

    module.GCSFileSystem._request = request


def _silent(library, cls_name, *names):
    """The methods of a class do nothing and return None."""

    def patch(module):
        cls = getattr(module, cls_name)
        for name in names:
            if hasattr(cls, name):
                _wrap(cls, name, lambda original, name=name: lambda *a, **k: held.count(library, name))

    return patch


_PATCHES = {
    "wandb.sdk.wandb_init": _wandb,
    "mlflow.tracking._tracking_service.utils": _mlflow,
    "mlflow.tracking._model_registry.utils": _mlflow,
    "neptune.metadata_containers.run": _neptune_run,
    "neptune.metadata_containers.model": _neptune_run,
    "neptune.metadata_containers.model_version": _neptune_run,
    "neptune.metadata_containers.project": _neptune_run,
    "swanlab.sdk.cmd.init": _swanlab,
    "swanlab.data.sdk": _swanlab,
    "comet_ml": _comet,
    "clearml.task": _clearml,
    "aim.sdk.repo": _aim,
    "botocore.client": _botocore,
    "aiobotocore.client": _aiobotocore,
    "gcsfs.core": _gcsfs,
    "google.cloud.storage.blob": _silent(
        "google.cloud.storage", "Blob", "upload_from_file", "upload_from_filename", "upload_from_string", "delete",
        "rewrite", "compose", "patch", "update", "make_public"),
    "azure.storage.blob._blob_client": _silent(
        "azure.storage.blob", "BlobClient", "upload_blob", "delete_blob", "append_block", "stage_block",
        "commit_block_list", "upload_page", "set_blob_metadata"),
}  # fmt: skip
