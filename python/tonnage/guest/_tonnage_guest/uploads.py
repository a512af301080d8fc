# SPDX-License-Identifier: Apache-2.0
"""What would be sent to a hub is not sent: a virtual run's values are made up.

The writing functions of huggingface_hub return something harmless of the kind that they return; reading and
downloading stay as they were. They are replaced as the module's import ends, before anybody can bind a name of it, and in
every process, with torch or without.
"""

import functools

from . import held, imports

_COMMITS = ("create_commit", "upload_file", "upload_folder", "delete_file", "delete_files", "delete_folder",
            "create_commits_on_pr")
_REPOSITORIES = ("create_repo", "duplicate_repo", "duplicate_space")
# Further ones are known by their first word, so that those of later versions are, too.
_WRITING = (
    "accept_", "add_", "batch_", "cancel_", "change_", "comment_", "copy_", "create_", "delete_", "disable_",
    "duplicate_", "edit_", "enable_", "grant_", "hide_", "like", "merge_", "move_", "pause_", "permanently_",
    "preupload_", "reject_", "rename_", "request_", "rerun_", "restart_", "resume_", "run_job", "run_uv_job",
    "scale_", "set_", "super_squash_", "suspend_", "sync_", "trigger_", "unlike", "update_", "upload_",
)  # fmt: skip


def install():
    """Waits for huggingface_hub."""
    imports.watch("huggingface_hub.hf_api", _patch)
    imports.watch("huggingface_hub.repository", _patch_repository)


def _patch(module):
    try:
        cls = module.HfApi
        for name in dir(cls):
            if name.startswith(_WRITING) and callable(getattr(cls, name, None)):
                _replace(module, cls, name, _answer(name))
    except Exception:
        pass  # a version of another shape: the network wall is left


def _answer(name):
    if name in _COMMITS:
        return _commit
    return _repository if name in _REPOSITORIES else _nothing


def _replace(module, cls, name, answer):
    original = getattr(cls, name)

    @functools.wraps(original)
    def suppressed(self, *args, **kwargs):
        held.count("huggingface_hub", name)
        result = answer(module, args, kwargs)
        return _future(result) if kwargs.get("run_as_future") else result

    setattr(cls, name, suppressed)
    api = getattr(module, "api", None)
    if api is not None and name in vars(module):
        setattr(module, name, getattr(api, name))  # the module's functions are methods of one HfApi


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
        held.count("huggingface_hub", "git_push")
        return "" if kwargs.get("blocking", True) else ("", None)

    cls.git_push = git_push
