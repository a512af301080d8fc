# SPDX-License-Identifier: Apache-2.0
"""Nothing is sent to a hub or a tracker, whenever its module is imported, with torch or without; what is returned is of the
right kind. The libraries' own tests against a server are run by hand (doc/design/0020-network.md); here trackers are small
modules of the same shape, whose functions say how they were called."""

import pytest

HUB = """
url = create_repo("someone/thing", token="hf_x", exist_ok=True)
assert url.repo_id == "someone/thing" and isinstance(url, str)
commit = upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id="someone/thing")
assert commit.oid
future = HfApi().upload_folder(repo_id="someone/thing", folder_path=".", run_as_future=True)
assert future.result().commit_url and future.done()
HfApi().delete_repo("someone/thing")
HfApi().create_webhook(url="http://x", watched=[])
"""
NAMES = "from huggingface_hub import HfApi, create_repo, upload_file\n"


@pytest.fixture
def held(tmp_path):
    (tmp_path / "run/state").mkdir(parents=True, exist_ok=True)

    def lines():
        path = tmp_path / "run/state/held"
        return [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []

    return lines


@pytest.mark.parametrize("order", ["import torch\n" + NAMES, NAMES + "import torch\n", NAMES])
def test_hub(run_with, held, wheel, order):
    done = run_with(wheel, order + HUB, timeout=60, forked=order.startswith("import torch"))
    assert done.status == 0, done.stderr
    assert [line[2] for line in held()] == ["create_repo", "upload_file", "upload_folder", "delete_repo", "create_webhook"]
    assert {(line[0], line[1]) for line in held()} == {("call", "huggingface_hub")}


def test_hub_where_the_network_is_allowed(run_with, held, wheel):
    done = run_with(wheel, NAMES + "from huggingface_hub.errors import OfflineModeIsEnabled\ntry: create_repo('a/b', token='hf_x')\nexcept OfflineModeIsEnabled: print('would be sent')\n", TONNAGE_NETWORK="allow")
    assert done.stdout == "would be sent\n" and held() == [], done.stderr


GCS = "import asyncio; from gcsfs.core import GCSFileSystem as F; print(asyncio.run(F()._request(%s))[1].get('Range'))"
SHAPES = {
    "wandb/__init__.py": "from wandb.sdk import init\n",
    "wandb/sdk/__init__.py": "from .wandb_init import init\n",
    "wandb/sdk/wandb_init.py": "import os\ndef init(project=None, mode=None, settings=None):\n    return mode, os.environ.get('WANDB_MODE'), getattr(settings, 'mode', None)\n",
    "mlflow/__init__.py": "from mlflow.tracking._tracking_service.utils import set_tracking_uri, get_tracking_uri, _get_store\n",
    "mlflow/tracking/__init__.py": "",
    "mlflow/tracking/_tracking_service/__init__.py": "",
    "mlflow/tracking/_tracking_service/utils.py": "_uri = None\ndef set_tracking_uri(uri):\n    global _uri\n    _uri = uri\ndef get_tracking_uri():\n    return _uri\ndef _get_store(store_uri=None, artifact_uri=None):\n    return store_uri or _uri\n",
    "swanlab/__init__.py": "from swanlab.sdk.cmd.init import init\n",
    "swanlab/sdk/__init__.py": "", "swanlab/sdk/cmd/__init__.py": "",
    "swanlab/sdk/cmd/init.py": "def init(*, mode=None):\n    return mode\n",
    "botocore/__init__.py": "",
    "botocore/client.py": "class BaseClient:\n    class meta:\n        class service_model:\n            service_name = 's3'\n    def _make_api_call(self, operation, parameters):\n        return 'sent'\n",
    "gcsfs/__init__.py": "",
    "gcsfs/core.py": "class GCSFileSystem:\n    async def _request(self, method, path, *args, headers=None, **kwargs):\n        return 'sent'\n",
    "clearml/__init__.py": "from .task import Task\n",
    "clearml/task.py": "class Task:\n    offline = False\n    @classmethod\n    def set_offline(cls, offline_mode=False):\n        cls.offline = offline_mode\n    @classmethod\n    def init(cls):\n        return cls.offline\n",
}  # fmt: skip
TRACKERS = {
    "wandb told online": ("import wandb; print(wandb.init(mode='online'))", "('offline', 'offline', None)", ["wandb"]),
    "wandb's variable set in the code": ("import os, wandb; os.environ['WANDB_MODE'] = 'online'; print(wandb.init())", "('offline', 'offline', None)", ["wandb"]),
    "wandb's settings": ("import wandb\nclass S: mode = 'online'\nprint(wandb.init(settings=S))", "('offline', 'offline', 'offline')", ["wandb"]),
    "wandb switched off stays so": ("import os, wandb; os.environ['WANDB_MODE'] = 'disabled'; print(wandb.init())", "(None, 'disabled', None)", []),
    "wandb offline by itself": ("import wandb; print(wandb.init(mode='offline'))", "('offline', 'offline', None)", []),
    "mlflow's server": ("import mlflow; mlflow.set_tracking_uri('http://h:1'); print(mlflow.get_tracking_uri().split('/')[0])", "sqlite:", ["mlflow"]),
    "mlflow's store by name": ("import mlflow; print(mlflow._get_store('https://h').split('/')[0])", "sqlite:", ["mlflow"]),
    "mlflow's own folder": ("import mlflow; mlflow.set_tracking_uri('/a/b'); print(mlflow.get_tracking_uri())", "/a/b", []),
    "swanlab": ("import swanlab; print(swanlab.init(mode='online'))", "offline", ["swanlab"]),
    "swanlab switched off stays so": ("import swanlab; print(swanlab.init(mode='disabled'))", "disabled", []),
    "clearml": ("from clearml import Task; Task.set_offline(False); print(Task.init())", "True", ["clearml"]),
    "a resumable upload is told that all has come": (GCS % "'POST', 'x', headers={'Content-Range': 'bytes 9-62/63'}", "bytes=0-62", ["gcsfs"]),
    "a piece of unknown whole": (GCS % "'PUT', 'x', headers={'Content-Range': 'bytes 0-262143/*'}", "bytes=0-262143", ["gcsfs"]),
    "the end of an empty buffer": (GCS % "'PUT', 'x', headers={'Content-Range': 'bytes */100'}", "bytes=0-99", ["gcsfs"]),
    "a plain upload": (GCS % "'POST', 'x'", "None", ["gcsfs"]),
    "S3 writes": ("from botocore.client import BaseClient as B; print(B()._make_api_call('PutObject', {})['ETag'][:3])", '"00', ["s3"]),
    "S3 reads": ("from botocore.client import BaseClient as B; print(B()._make_api_call('GetObject', {}))", "sent", []),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACKERS)
def test_trackers_stay_offline(run_with, held, wheel, tmp_path, name):
    for path, text in SHAPES.items():
        file = tmp_path / "shapes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    program, printed, libraries = TRACKERS[name]
    done = run_with(wheel, program + "\n", search=str(tmp_path / "shapes"))
    assert done.stdout.strip() == printed, done.stderr
    assert [line[1] for line in held()] == libraries


RETRIES = {
    "google/__init__.py": "", "google/api_core/__init__.py": "", "google/api_core/retry/__init__.py": "",
    "google/api_core/retry/retry_base.py": "def _retry_error_helper(exc, deadline, sleep_iterator, error_list, predicate_fn, on_error_fn, factory, timeout):\n    return predicate_fn(exc)\n",
    "gcsfs/__init__.py": "", "gcsfs/retry.py": "def is_retriable(exception):\n    return True\n",
    "botocore/__init__.py": "",
    "botocore/retryhandler.py": "class RetryHandler:\n    def __call__(self, attempts, response, caught_exception, **kwargs):\n        return 1\n",
    "aiobotocore/__init__.py": "",
    "aiobotocore/retryhandler.py": "class AioRetryHandler:\n    async def _call(self, attempts, response, caught_exception, **kwargs):\n        return 1\n",
}  # fmt: skip
ASKS = """
import asyncio, errno
from google.api_core.retry.retry_base import _retry_error_helper as google
from gcsfs.retry import is_retriable
from botocore.retryhandler import RetryHandler
from aiobotocore.retryhandler import AioRetryHandler
class Client(Exception): pass
def raised(error):
    try:
        try: raise error
        except OSError as inner: raise Client("cannot connect") from inner
    except Client as outer: return outer
for error in (raised(OSError(errno.ENETUNREACH, "x")), Client("last error: addr: ipv4:1.2.3.4:5 error: Network is unreachable"), raised(OSError(errno.ETIMEDOUT, "x"))):
    print(google(error, None, None, [], lambda e: True, None, None, None), is_retriable(error), RetryHandler()(1, None, error), asyncio.run(AioRetryHandler()._call(1, None, error)))
"""


@pytest.mark.parametrize("kernels", [0, 1])
def test_clients_of_object_stores_do_not_ask_again_what_the_wall_refuses(run_with, held, wheel, tmp_path, kernels):
    """Another error, and a network that is not there before the first kernel, are their own business."""
    for path, text in RETRIES.items():
        file = tmp_path / "shapes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "run/state/network").write_bytes(bytes(8) + bytes([kernels]) + bytes(7))
    done = run_with(wheel, ASKS, search=str(tmp_path / "shapes"))
    asks, does_not = "True True 1 1", "False False None None"
    assert done.stdout.splitlines() == [does_not if kernels else asks] * 2 + [asks], done.stderr
