# SPDX-License-Identifier: Apache-2.0
"""Nothing is sent to a hub; what is returned is of the right kind."""


def test_hub(run_with, wheel, tmp_path):
    done = run_with(wheel, """
import torch, huggingface_hub
from huggingface_hub import HfApi, create_repo, upload_file
url = create_repo("someone/thing", token="hf_x", exist_ok=True)
assert url.repo_id == "someone/thing" and isinstance(url, str)
commit = upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id="someone/thing")
assert commit.oid
future = HfApi().upload_folder(repo_id="someone/thing", folder_path=".", run_as_future=True)
assert future.result().commit_url and future.done()
HfApi().delete_repo("someone/thing")
""", timeout=60)
    assert done.status == 0, done.stderr
    assert done.document["uploads_suppressed"] == [{"what": "huggingface_hub", "count": 4}]
