# SPDX-License-Identifier: Apache-2.0
"""What would be sent to a hub is not sent: a virtual run's values are made up.

The writing functions of huggingface_hub return something harmless of the kind that they return; reading and
downloading stay as they were.
"""

import functools

from . import guard, imports
from .state import state

_COMMITS = ("create_commit", "upload_file", "upload_folder", "delete_file", "delete_files", "delete_folder",
            "create_commits_on_pr")
_REPOSITORIES = ("create_repo", "duplicate_repo", "duplicate_space")
_SILENT = (
    "upload_large_folder", "preupload_lfs_files", "delete_repo", "move_repo", "update_repo_visibility",
    "update_repo_settings", "create_branch", "delete_branch", "create_tag", "delete_tag", "super_squash_history",
    "permanently_delete_lfs_files", "create_discussion", "create_pull_request", "comment_discussion",
    "merge_pull_request", "add_collection_item", "create_collection", "delete_collection", "update_collection_item",
    "like", "unlike", "add_space_secret", "add_space_variable", "request_space_hardware", "restart_space",
    "batch_bucket_files", "create_bucket", "sync_bucket",
)


def install():
    """Waits for huggingface_hub."""
    imports.watch("huggingface_hub.hf_api", _patch)
    imports.watch("huggingface_hub.repository", _patch_repository)


def _patch(module):
    try:
        _patch_api(module)
    except Exception as error:
        guard.disarm(error)


def _patch_api(module):
    cls = module.HfApi
    for name in _COMMITS:
        _replace(module, cls, name, _commit)
    for name in _REPOSITORIES:
        _replace(module, cls, name, _repository)
    for name in _SILENT:
        _replace(module, cls, name, _nothing)


def _replace(module, cls, name, answer):
    original = getattr(cls, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def suppressed(self, *args, **kwargs):
        _count("huggingface_hub")
        result = answer(module, args, kwargs)
        return _future(result) if kwargs.get("run_as_future") else result

    setattr(cls, name, suppressed)
    api = getattr(module, "api", None)
    if api is not None and name in vars(module):
        setattr(module, name, getattr(api, name))  # the module's functions are methods of one HfApi


def _count(what):
    if state.armed:
        state.uploads[what] = state.uploads.get(what, 0) + 1


def _commit(module, args, kwargs):
    repository = kwargs.get("repo_id") or next((a for a in args if isinstance(a, str)), "unknown/unknown")
    return module.CommitInfo(
        commit_url="https://huggingface.co/%s/commit/%s" % (repository, "0" * 40),
        commit_message=str(kwargs.get("commit_message") or ""),
        commit_description=str(kwargs.get("commit_description") or ""),
        oid="0" * 40,
    )


def _repository(module, args, kwargs):
    name = kwargs.get("repo_id") or (args[0] if args else "unknown/unknown")
    kind = {"dataset": "datasets/", "space": "spaces/"}.get(kwargs.get("repo_type"), "")
    name = name if "/" in name else "unknown/" + name
    return module.RepoUrl("https://huggingface.co/%s%s" % (kind, name))


def _nothing(module, args, kwargs):
    return None


def _future(result):
    from concurrent.futures import Future

    future = Future()
    future.set_result(result)
    return future


def _patch_repository(module):
    cls = getattr(module, "Repository", None)
    if cls is None:
        return

    def git_push(self, *args, **kwargs):
        _count("huggingface_hub")
        return "" if kwargs.get("blocking", True) else ("", None)

    cls.git_push = git_push
