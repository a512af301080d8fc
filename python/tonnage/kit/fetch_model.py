# SPDX-License-Identifier: Apache-2.0
"""tonnage fetch: what from_pretrained reads of a model before the weights themselves, through the hub client of this Python.

    fetch_model.py STORE MODEL REVISION INTO json|text    (src/supervise/fetch.c becomes it; INTO may be empty)

Small files are fetched whole. Of each safetensors file its header is: eight bytes with the header's length, and the header (github.com/huggingface/safetensors,
README, "Format"); the file that is written ends there, which `tonnage run` knows as weights that are not there (doc/design/0023-weights.md).

Everything is written into a folder beside its place, under a name that nobody looks for, and gets its name by one rename when it is whole: what was interrupted
counts as nothing. The hub's own cache is not written: there, a file without its tensors would be taken for the whole one by every program of this person.
Names, lengths and headers come from a server and are not trusted.
"""

import collections
import concurrent.futures
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import struct
import sys
import tempfile
import threading
import time

sys.path[:] = [each for each in sys.path if each != os.path.dirname(os.path.abspath(__file__))]

MANIFEST = ".tonnage-fetch.json"
PART = ".tonnage-part-"
WHOLE = (".json", ".jsonl", ".txt", ".model", ".py", ".jinja", ".tiktoken", ".yaml", ".yml", ".vocab", ".bpe", ".spm", ".merges", ".cfg", ".toml")
WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".gguf", ".ot")
LARGEST_WHOLE = 100 << 20
LONGEST_HEADER = 100_000_000
FIRST_BYTES = 32 << 10  # most headers end there
CONNECTIONS = 8
SECONDS = 30
TRIES = 3
FAILED, USAGE, INTERRUPTED = 1, 2, 130
LOG_IN = "(hf auth login, or HF_TOKEN)"


Options = collections.namedtuple("Options", "store model revision into json")


class Failure(Exception):
    """Nothing was fetched. kind: a word of doc/format/fetch.schema.json."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


# ---- the hub ----


class Hub:
    """The hub as the person's own client speaks to it: its endpoint, token, proxies and certificates."""

    def __init__(self, model, revision):
        try:
            import huggingface_hub
        except ImportError:
            raise Failure("no_client", f"{sys.executable} has no huggingface_hub: name the Python that has it with --python, or install it there "
                                       "(pip install huggingface_hub)") from None
        try:
            from huggingface_hub import HfApi, constants, hf_hub_url
            from huggingface_hub import utils
            from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status
        except ImportError:
            raise Failure("old_client", f"huggingface_hub {getattr(huggingface_hub, '__version__', '')} of {sys.executable} is too old: "
                                        "0.17 or newer is needed (pip install -U huggingface_hub)") from None
        self.errors, self.session, self.check, self.url = utils, get_session, hf_raise_for_status, hf_hub_url
        self.endpoint = constants.ENDPOINT
        self.offline = bool(constants.HF_HUB_OFFLINE)
        self.api = HfApi(library_name="tonnage")
        self.headers = build_hf_headers(library_name="tonnage")
        self.model, self.revision = model, revision
        self.moved = 0
        self.stopped = False
        self.lock = threading.Lock()

    def list(self):
        """(commit, {path: bytes})"""
        info = self.asked(lambda: self.api.model_info(self.model, revision=self.revision, files_metadata=True, timeout=SECONDS))
        files = {}
        for each in info.siblings or ():
            large = getattr(each, "lfs", None) or {}
            size = getattr(each, "size", None)
            size = size if size is not None else (large.get("size") if isinstance(large, dict) else getattr(large, "size", None))
            if size is None:
                raise Failure("hub", f"{self.endpoint} does not say how long {printable(each.rfilename)} of {self.model} is: is it a hub (HF_ENDPOINT)?")
            files[each.rfilename] = size
        return info.sha, files

    def asked(self, ask):
        """What ask() returns; what the hub answers instead, in one line."""
        for again in range(TRIES):
            try:
                return ask()
            except Failure:
                raise
            except Exception as error:
                failure = self.explain(error)
                if failure.kind != "no_network" or self.offline or again == TRIES - 1:
                    raise failure from None
                time.sleep(1 << again)
        return None

    def explain(self, error):
        named, page = self.errors, f"{self.endpoint}/{self.model}"
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, getattr(named, "HFValidationError", ())):
            return Failure("not_found", f"{self.model} is no name of a model: it is NAME or OWNER/NAME, as in from_pretrained")
        if isinstance(error, named.GatedRepoError):
            return Failure("gated", f"{self.model} is gated: accept its licence on {page}, and log in with that account's token {LOG_IN}")
        if isinstance(error, named.RevisionNotFoundError):
            return Failure("no_revision", f"{self.model} has no revision {self.revision} on {self.endpoint}")
        if isinstance(error, named.RepositoryNotFoundError):
            return Failure("not_found", f"there is no model {self.model} on {self.endpoint}, or it is private: then log in with a token that may read it {LOG_IN}")
        if status in (401, 403):
            return Failure("refused", f"the hub refuses {self.model} ({status}): look at {page}, and log in with a token that is valid {LOG_IN}")
        if status is not None and status < 500 and status not in (408, 429):
            return Failure("hub", f"the hub answered {status} for {self.model}: {first_line(error)}")
        return Failure("no_network", f"{self.endpoint} cannot be reached ({first_line(error)}); on a machine that reaches it run `tonnage fetch {self.model} "
                                     "--into DIR`, and bring DIR: config.json, the tokenizer's files, *.safetensors.index.json, and the header of each "
                                     "*.safetensors")

    def read(self, path, commit, begin, length, whole=False):
        """`length` bytes of a file from `begin` on; one more of a file that is wanted whole and is longer than that."""
        return self.asked(lambda: self.read_once(path, commit, begin, length, whole))

    def read_once(self, path, commit, begin, length, whole):
        headers = {**self.headers, "Accept-Encoding": "identity"}
        if whole:
            length += 1
        else:
            headers["Range"] = f"bytes={begin}-{begin + length - 1}"
        got = bytearray()
        with self.opened(self.url(self.model, path, revision=commit, endpoint=self.endpoint), headers) as (response, pieces):
            skip = begin if response.status_code == 200 else 0  # a server without ranges: no more of it is read than is needed
            for piece in pieces:
                with self.lock:
                    self.moved += len(piece)
                got += piece
                if len(got) >= skip + length:
                    break
        return bytes(got[skip : skip + length])

    @contextlib.contextmanager
    def opened(self, url, headers):
        session = self.session()
        if hasattr(session, "stream") and callable(session.stream):  # httpx
            with session.stream("GET", url, headers=headers, timeout=SECONDS, follow_redirects=True) as response:
                if response.status_code >= 400:
                    response.read()
                self.check(response)
                yield response, response.iter_raw()
            return
        with session.get(url, headers=headers, timeout=SECONDS, stream=True) as response:  # requests
            self.check(response)
            yield response, response.iter_content(FIRST_BYTES)


def first_line(error):
    return printable((str(error) or type(error).__name__).strip().splitlines()[0][:200])


def printable(text):
    return "".join(c if c.isprintable() else "?" for c in str(text))


# ---- what is fetched ----


def is_safe(path):
    parts = path.split("/")
    return path.isprintable() and "\\" not in path and all(part not in ("", ".", "..") for part in parts) and not parts[0].startswith(".tonnage")


def kind_of(path, size):
    """header, whole, or None: not needed, or too large."""
    if not is_safe(path):
        return None
    if path.endswith(".safetensors"):
        return "header" if size > FIRST_BYTES else "whole"
    return "whole" if path.endswith(WHOLE) and size <= LARGEST_WHOLE else None


def read_header(hub, path, commit, size):
    """The file up to the end of its header, which must describe the rest of it to the byte."""
    data = hub.read(path, commit, 0, min(FIRST_BYTES, size))
    length = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0
    if not 2 <= length <= min(LONGEST_HEADER, size - 8):
        raise Failure("damaged", f"{printable(path)} is no safetensors file")
    if len(data) < 8 + length:
        data += hub.read(path, commit, len(data), 8 + length - len(data))
    data = data[: 8 + length]
    try:
        tensors = {name: each for name, each in json.loads(data[8:]).items() if name != "__metadata__"}
        end = max((each["data_offsets"][1] for each in tensors.values()), default=0)
    except (ValueError, AttributeError, LookupError, TypeError):
        raise Failure("damaged", f"the header of {printable(path)} cannot be read") from None
    if len(data) != 8 + length or 8 + length + end != size:
        raise Failure("damaged", f"the header of {printable(path)} does not describe its {size} bytes")
    return data, any(".quant_state." in name for name in tensors)


def fetch_file(hub, folder, path, kind, commit, size):
    quantised = False
    if kind == "header":
        data, quantised = read_header(hub, path, commit, size)
    else:
        data = hub.read(path, commit, 0, size, whole=True)
        if len(data) != size:
            raise Failure("damaged", f"{printable(path)} is not {size} bytes long, as the hub's list says")
    if hub.stopped:
        raise Failure("interrupted", "interrupted")
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return {"path": path, "what": kind, "bytes": len(data), "model_bytes": size}, quantised


def fetch_files(hub, folder, files, commit):
    wanted = {path: kind_of(path, size) for path, size in files.items()}
    left_out = [{"path": path, "bytes": size} for path, size in sorted(files.items()) if wanted[path] is None]
    if not any(path.endswith(".safetensors") for path, kind in wanted.items() if kind):
        others = sorted(path for path in files if path.endswith(WEIGHTS))
        have = f" (its weights are {printable(others[0])}{' and others' if len(others) > 1 else ''})" if others else ""
        raise Failure("no_safetensors", f"{hub.model} has no safetensors{have}: of other files the first bytes do not say what is in them; bring the "
                                        "whole files, or name a revision that has safetensors with --revision")
    pool = concurrent.futures.ThreadPoolExecutor(CONNECTIONS)
    try:
        tasks = [pool.submit(fetch_file, hub, folder, path, kind, commit, files[path]) for path, kind in sorted(wanted.items()) if kind]
        results = [task.result() for task in tasks]
    except BaseException:
        hub.stopped = True
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return {"files": [row for row, _ in results], "left_out": left_out, "quantised": any(quantised for _, quantised in results)}


# ---- where it goes ----


@contextlib.contextmanager
def locked(folder):
    """One fetch at a time in a folder; what an interrupted one left there is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def remove_parts(folder, name):
    for each in folder.iterdir():
        if each.name.startswith(f"{PART}{name}-"):
            shutil.rmtree(each, ignore_errors=True)


def write_text(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PART)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(name, path)


def read_manifest(folder):
    try:
        return json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return None


class Place:
    """Where the files of a model go: the store, which has the form of the hub's cache, or a folder of the person's own."""

    def __init__(self, options):
        self.options = options
        self.into = pathlib.Path(options.into).absolute() if options.into else None
        self.model = None if self.into else pathlib.Path(options.store) / ("models--" + options.model.replace("/", "--"))

    def parent(self):
        return self.into.parent if self.into else self.model / "snapshots"

    def folder(self, commit):
        return self.into or self.model / "snapshots" / commit

    def check(self):
        """Before anything is asked of the network."""
        if self.into and self.into.exists() and not self.into.is_dir():
            raise Failure("folder", f"{printable(self.into)} is no folder")
        if self.into and self.into.is_dir() and any(self.into.iterdir()) and not (read_manifest(self.into) or {}).get("model") == self.options.model:
            raise Failure("folder", f"{printable(self.into)} is not empty: name a folder that is, or a new one")

    def known(self):
        """What an earlier fetch of this revision has left, when the hub cannot be asked."""
        try:
            commit = None if self.into else (self.model / "refs" / self.options.revision).read_text()
        except OSError:
            commit = self.options.revision
        manifest = read_manifest(self.folder(commit))
        return manifest if manifest and self.options.revision in (manifest["revision"], manifest["commit"]) else None

    def fill(self, hub, commit, files):
        """Fetches into a folder beside, which gets its name when it is whole."""
        folder, parent = self.folder(commit), self.parent()
        with locked(parent):
            remove_parts(parent, folder.name)
            manifest = read_manifest(folder)
            if manifest and manifest["commit"] == commit:
                return manifest, True
            if manifest:
                raise Failure("folder", f"{printable(folder)} holds commit {printable(manifest['commit'])[:12]} of {hub.model}: name a new folder for {commit[:12]}")
            part = pathlib.Path(tempfile.mkdtemp(dir=parent, prefix=f"{PART}{folder.name}-"))
            try:
                manifest = {"model": hub.model, "revision": hub.revision, "commit": commit, "endpoint": hub.endpoint,
                            **fetch_files(hub, part, files, commit), "repository": sorted(files)}
                write_text(part / MANIFEST, json.dumps(manifest, indent=1))
                part.chmod(0o755 & ~umask())
                os.rename(part, folder)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
            return manifest, False

    def name_revision(self, revision, commit):
        if not self.into and revision != commit:
            write_text(self.model / "refs" / revision, commit)


def umask():
    mask = os.umask(0o77)
    os.umask(mask)
    return mask


# ---- the command ----


def document_of(manifest, folder, revision, moved, there, asked=True):
    return {
        "schema": "tonnage.fetch/1",
        **{name: manifest[name] for name in ("model", "commit", "endpoint", "files", "left_out")},
        "revision": revision,
        "folder": str(folder),
        "already_there": there,
        "hub_asked": asked,
        "model_bytes": sum(row["model_bytes"] for row in manifest["files"] if row["path"].endswith(".safetensors")),
        "moved_bytes": moved,
        "quantised": manifest["quantised"],
        "error": None,
    }


def fetch(options):
    place = Place(options)
    place.check()
    hub = Hub(options.model, options.revision)
    try:
        commit, files = hub.list()
    except Failure as failure:
        known = place.known() if failure.kind == "no_network" else None
        if known is None:
            raise
        return document_of(known, place.folder(known["commit"]), options.revision, 0, True, False)
    if not commit or not commit.isalnum():
        raise Failure("hub", f"{hub.endpoint} does not say which commit {options.revision} of {options.model} is: is it a hub (HF_ENDPOINT)?")
    manifest, there = place.fill(hub, commit, files)
    place.name_revision(options.revision, commit)
    return document_of(manifest, place.folder(commit), options.revision, hub.moved, there)


def human(size):
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return None


def count(number, name):
    return f"{number} {name}{'' if number == 1 else 's'}"


def say(result, into):
    headers = [row for row in result["files"] if row["what"] == "header"]
    others = len(result["files"]) - len(headers)
    moved = f"{human(result['moved_bytes'])} read, {100 * result['moved_bytes'] / max(result['model_bytes'], 1):.2g} % of the weights' {human(result['model_bytes'])}"
    if result["already_there"]:
        moved = "all of it was there" + ("" if result["hub_asked"] else "; the hub cannot be reached, so whether it is the newest is unknown")
    lines = [f"{result['model']} at {result['commit'][:12]}: {count(len(headers), 'header')} of weights, {count(others, 'whole file')}; {moved}",
             f"  folder    {result['folder']}"]
    large = sorted((row for row in result["left_out"] if row["bytes"] > 1 << 20), key=lambda row: -row["bytes"])
    if large:
        more = f", and {len(large) - 3} more" if len(large) > 3 else ""
        lines.append("  left out  " + ", ".join(f"{row['path']} ({human(row['bytes'])})" for row in large[:3]) + more)
    if result["quantised"]:
        lines.append("  note      bitsandbytes has quantised these weights and keeps settings among them, which were not fetched; a run takes them from the layers that are loaded")
    run = "tonnage run --gpu CARD -- python PROGRAM"
    lines.append(f"  next      {run}, where PROGRAM loads {result['folder']}" if into else f"  next      HF_HUB_OFFLINE=1 {run}, unchanged")
    print("\n".join(printable(line) for line in lines))


def read_options():
    store, model, revision, into, form = sys.argv[1:]
    return Options(store, model, revision, into, form == "json")


def stop(*_):
    """Ends at once: connections that wait are not waited for, and what is half there the next call removes."""
    os.write(2, b"tonnage: interrupted: nothing was fetched\n")
    os._exit(INTERRUPTED)


def main():
    options = read_options()
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, stop)
    try:
        result, status = fetch(options), 0
    except (Failure, OSError) as failure:
        kind, text = getattr(failure, "kind", "folder"), printable(failure)
        result = {"schema": "tonnage.fetch/1", "model": options.model, "revision": options.revision, "error": {"kind": kind, "text": text}}
        print(f"tonnage: {text}", file=sys.stderr, flush=True)
        status = FAILED
    if options.json:
        print(json.dumps(result, indent=2))
    elif status == 0:
        say(result, options.into)
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
