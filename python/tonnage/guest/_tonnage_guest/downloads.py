# SPDX-License-Identifier: Apache-2.0
"""A download that the network wall refused is told to the supervisor: what a program does without the file proves nothing.

Two kinds of calls are looked at when they fail. Functions that only ever fetch what a program asks for ("download"): one of
them is enough to doubt the run. Requests that read in general ("reading"), among them telemetry and looks for newer versions:
they count only where the program then fails itself. Clients that would ask again and again are told not to.
"""

import errno
import functools
import os
import struct

from . import held, imports, pretrained

_KERNELS = 8  # offset of the word "a kernel was launched" in the run's network table (src/preload/network.h)
_REFUSED = (errno.ENETUNREACH, errno.ECONNRESET)
# Modules and their functions that fetch; every one takes a URL first, or is huggingface_hub's.
_FETCHES = {
    "huggingface_hub.file_download": ("hf_hub_download", "http_get"),
    "huggingface_hub._snapshot_download": ("snapshot_download",),
    "torch.hub": ("download_url_to_file", "load_state_dict_from_url"),
    "torchvision.datasets.utils": ("download_url", "download_and_extract_archive"),
    "urllib.request": ("urlretrieve",),
    "datasets.utils.file_utils": ("cached_path", "xopen"),
    "transformers.utils.hub": ("cached_file", "cached_files"),
    "gdown.download": ("download",),
    "wget": ("download",),
}


def install():
    """Waits for the modules that are known."""
    for name, functions in _FETCHES.items():
        imports.watch(name, functools.partial(_watch_functions, functions))
    imports.watch("urllib.request", lambda module: _wrap(module.OpenerDirector, "open", "reading", _of_urllib))
    imports.watch("requests.sessions", lambda module: _wrap(module.Session, "request", "reading", _of_requests))
    imports.watch("httpx", lambda module: _wrap(module.Client, "send", "reading", _of_httpx))


    for name, patch in _RETRIES.items():
        imports.watch(name, functools.partial(_try, patch))


def _try(patch, module):
    try:
        patch(module)
    except Exception:
        pass  # another shape


# ---- clients of object stores that ask again for minutes: a refused connection stays refused ----


def _is_final(error):
    try:
        return error is not None and _is_of_the_wall(error) and _is_closed()
    except Exception:
        return False


def _google(module):
    """google.api_core: of the error, and six arguments behind it, the fifth says whether to ask again."""
    original = module._retry_error_helper

    @functools.wraps(original)
    def helper(exc, deadline, sleep_iterator, error_list, predicate_fn, *rest, **kwargs):
        return original(exc, deadline, sleep_iterator, error_list, lambda e: not _is_final(e) and predicate_fn(e), *rest, **kwargs)

    module._retry_error_helper = helper


def _gcsfs(module):
    original = module.is_retriable
    module.is_retriable = functools.wraps(original)(lambda exception: not _is_final(exception) and original(exception))


def _botocore(module):
    original = module.RetryHandler.__call__

    @functools.wraps(original)
    def call(self, attempts, response, caught_exception, **kwargs):
        return None if _is_final(caught_exception) else original(self, attempts, response, caught_exception, **kwargs)

    module.RetryHandler.__call__ = call


def _aiobotocore(module):
    original = module.AioRetryHandler._call

    @functools.wraps(original)
    async def call(self, attempts, response, caught_exception, **kwargs):
        return None if _is_final(caught_exception) else await original(self, attempts, response, caught_exception, **kwargs)

    module.AioRetryHandler._call = call


_RETRIES = {
    "google.api_core.retry.retry_base": _google,
    "gcsfs.retry": _gcsfs,
    "botocore.retryhandler": _botocore,
    "aiobotocore.retryhandler": _aiobotocore,
}


# ---- who asked ----


def _watch_functions(names, module):
    for name in names:
        _wrap(module, name, "download", _of_first)


def _wrap(owner, name, kind, find_url):
    try:
        original = getattr(owner, name)

        @functools.wraps(original)
        def call(*args, **kwargs):
            try:
                return original(*args, **kwargs)
            except Exception as error:
                _look(error, kind, find_url, args, kwargs)
                raise

        setattr(owner, name, call)
    except Exception:
        pass  # another shape


def _look(error, kind, find_url, args, kwargs):
    try:
        if pretrained.is_asked_for() or not _is_of_the_wall(error) or not _is_closed():
            return
        url = find_url(args, kwargs)
        if url is not None:
            held.count(_host_of(url), "", kind)
    except Exception:
        pass


def _is_of_the_wall(error):
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _REFUSED:
            return True
        inner = getattr(error, "reason", None) or getattr(error, "kwargs", {}).get("error") or (error.args[0] if error.args else None)
        if isinstance(inner, BaseException) and id(inner) not in seen and _is_of_the_wall(inner):
            return True
        if "Network is unreachable" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_closed():
    with open(os.path.join(os.environ["TONNAGE_RUN"], "state", "network"), "rb") as table:
        table.seek(_KERNELS)
        return struct.unpack("I", table.read(4))[0] != 0


def _host_of(url):
    from urllib.parse import urlsplit

    return (urlsplit(url).hostname or "?") if "://" in url else url


# ---- the URL of a call that reads; None: it does not ----


def _of_first(args, kwargs):
    url = kwargs.get("url") or next((a for a in args if isinstance(a, str) and "://" in a), None)
    return url or os.environ.get("HF_ENDPOINT") or "https://huggingface.co"


def _of_urllib(args, kwargs):
    request = args[1] if len(args) > 1 else kwargs.get("fullurl")
    data = args[2] if len(args) > 2 else kwargs.get("data")
    if data is not None or getattr(request, "data", None) is not None:
        return None
    return request if isinstance(request, str) else request.full_url


def _of_requests(args, kwargs):
    method = args[1] if len(args) > 1 else kwargs.get("method")
    return (args[2] if len(args) > 2 else kwargs.get("url")) if str(method).upper() in ("GET", "HEAD") else None


def _of_httpx(args, kwargs):
    request = args[1] if len(args) > 1 else kwargs.get("request")
    return str(request.url) if request.method in ("GET", "HEAD") else None
