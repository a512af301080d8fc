# SPDX-License-Identifier: Apache-2.0
"""`tonnage fetch` from a hub of the test's own by the real hub client, and what transformers' from_pretrained makes of it in a run without a
network: the peak is that of whole files, to the byte."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from conftest import ENDS, HERE, MAIN, ROOT, TEMPORARY, TONNAGE, python_of, run_tonnage
from fork_servers import LIBRARIES
from hub_server import TOKEN, Hub, commit_of, make_model

FORKED = True  # ../fork_servers.py

PEAKS = ("allocated_bytes", "reserved_bytes", "requested_bytes", "device_bytes")
SHARDED, SINGLE, GATED = "acme/sharded", "acme/single", "acme/gated"
CLIENTS = [MAIN, *(pytest.param(wheel, marks=pytest.mark.long) for wheel in ENDS)]  # huggingface_hub 2 by httpx, 0.36 by requests
NOWHERE = "http://127.0.0.1:9"
# The same for each test, which finds them empty, so that one fork server has read them.
CACHE = pathlib.Path(TEMPORARY.name) / "fetched"
HUB_HOME = CACHE / "huggingface"
HERE_ONLY = {"XDG_CACHE_HOME": str(CACHE), "HF_HOME": str(HUB_HOME), "HF_ENDPOINT": NOWHERE}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    sizes = {name: make_model(root / name, shards) for name, shards in ((SHARDED, 3), (SINGLE, 1), (GATED, 1))}
    assert all(size > 400_000_000 for size in sizes.values())
    (root / "acme/pickled").mkdir()
    (root / "acme/pickled/config.json").write_text("{}")
    (root / "acme/pickled/pytorch_model.bin").write_bytes(b"x" * 100)
    (root / "acme/damaged").mkdir()
    (root / "acme/damaged/config.json").write_text("{}")
    (root / "acme/damaged/model.safetensors").write_bytes((root / SINGLE / "model.safetensors").open("rb").read(40000))
    return root, sizes


@pytest.fixture
def hub(models):
    hub = Hub(models[0], gated={GATED})
    yield hub
    hub.close()


class Fetcher:
    """fetch(MODEL, options...): (what was done, its document) with a cache and a home of the test's own."""

    def __init__(self, folder, hub):
        self.cache, self.hub = CACHE, hub
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_CACHE_HOME": str(self.cache), "HF_ENDPOINT": hub.endpoint,
                            "TMPDIR": TEMPORARY.name}
        self.store = self.cache / "tonnage/hub"

    def words(self, model, *options, wheel=MAIN):
        return [TONNAGE, "fetch", model, "--python", python_of(wheel), *options]

    def __call__(self, model, *options, wheel=MAIN, env=None):
        return subprocess.run(self.words(model, *options, wheel=wheel), capture_output=True, text=True, timeout=120, env={**self.environment, **(env or {})})

    def document(self, model, *options, **named):
        done = self(model, "--json", *options, **named)
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        check(document)
        return document

    def fails(self, model, *options, **named):
        """The one line that says why."""
        done = self(model, "--json", *options, **named)
        assert done.returncode == 1 and done.stderr.startswith("tonnage: ") and done.stderr.count("\n") == 1, done
        document = json.loads(done.stdout)
        check(document)
        assert done.stderr == f"tonnage: {document['error']['text']}\n"
        return document["error"]

    def parts(self):
        return [path for path in self.cache.rglob("*") if path.name.startswith(".tonnage-part-")]


def check(document):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(json.loads((ROOT / "doc/format/fetch.schema.json").read_text())).validate(document)


@pytest.fixture
def fetch(tmp_path, hub):
    yield Fetcher(tmp_path, hub)
    shutil.rmtree(CACHE, ignore_errors=True)


@pytest.fixture(scope="module")
def peaks_of_whole(models, tmp_path_factory):
    """peaks_of_whole(model, wheel): where the files are there as a whole; of the gated model those of the other one in one file."""
    known = {}

    def ask(name, wheel):
        key = (SINGLE if name == GATED else name), wheel
        if key not in known:
            program = [python_of(wheel), HERE / "programs/from_hub.py", models[0] / key[0]]
            run = run_tonnage(["--gpu=a100-80", "--steps=all", "--weights=real"], program, tmp_path_factory.mktemp("whole"), forked=True,
                              imports=LIBRARIES)  # fmt: skip
            assert run.report["stand_ins"] == []
            known[key] = peaks(run)
        return known[key]

    return ask


def peaks(run):
    assert run.verdict == "fits" and run.status == 0, run.explain()
    return [run.report["peak"][name] for name in PEAKS]


@pytest.mark.parametrize("wheel", CLIENTS)
@pytest.mark.parametrize("name", [SHARDED, SINGLE, GATED])
def test_a_run_on_what_was_fetched_has_the_peak_of_whole_files(tonnage, models, peaks_of_whole, hub, fetch, name, wheel):
    sizes = models[1]
    token = {"HF_TOKEN": TOKEN} if name == GATED else {}
    document = fetch.document(name, wheel=wheel, env=token)
    assert hub.sent < sizes[name] / 100 and document["moved_bytes"] <= hub.sent  # heads and the list, too
    assert document["commit"] == commit_of(name) and document["revision"] == "main" and not document["already_there"]
    headers = [row for row in document["files"] if row["what"] == "header"]
    assert len(headers) == (3 if name == SHARDED else 1) and sizes[name] < sum(row["model_bytes"] for row in headers) == document["model_bytes"]
    assert [row["path"] for row in document["left_out"]] == ["README.md", "pytorch_model.bin"]
    assert hub.leaked == []  # the token goes to the hub only, not to where it has its files
    hub.close()

    headers_only = tonnage(wheel, ["programs/from_hub.py", name], "--gpu=a100-80", "--steps=all", env=HERE_ONLY)
    assert peaks(headers_only) == peaks_of_whole(name, wheel)
    assert len(headers_only.report["stand_ins"]) == len(headers)
    assert not HUB_HOME.exists()  # where every program looks there is no file without its tensors


@pytest.mark.long  # a minute: the client asks each file of the hub again and again
def test_without_a_word_about_being_offline(tonnage, hub, fetch):
    """The program is unmodified and the environment says nothing: the hub that cannot be reached is not needed."""
    fetch.document(SINGLE)
    hub.close()
    run = tonnage(MAIN, ["programs/from_hub.py", SINGLE], "--gpu=a100-80", "--steps=all", env={**HERE_ONLY, "HF_HUB_OFFLINE": "0"})
    assert run.verdict == "fits" and len(run.report["stand_ins"]) == 1, run.explain()


@pytest.mark.fresh  # no other run would use its server
def test_real_weights_are_not_mixed_with_headers(tonnage, hub, fetch):
    """With --weights real a header is no file of weights: the program finds none, as it would on any machine."""
    fetch.document(SINGLE)
    run = tonnage(MAIN, ["programs/from_hub.py", SINGLE], "--gpu=a100-80", "--weights=real", env=HERE_ONLY)
    assert run.verdict == "failed" and "cached files" in " ".join(run.stderr.split()), run.explain()


def test_whole_weights_in_the_hubs_cache_come_first(tonnage, models, hub, fetch):
    """The hub's client has them: a run takes those, and the fetched headers stay where they are."""
    fetch.document(SINGLE)
    script = "import sys; from huggingface_hub import hf_hub_download; [hf_hub_download(sys.argv[1], name) for name in sys.argv[2:]]"
    small = [path.name for path in (models[0] / SINGLE).glob("*.json")]
    subprocess.run([python_of(MAIN), "-c", script, SINGLE, *small], check=True, timeout=120, env={**fetch.environment, "HF_HOME": str(HUB_HOME)})
    snapshot = HUB_HOME / "hub/models--acme--single/snapshots" / commit_of(SINGLE)
    (snapshot / "model.safetensors").symlink_to(models[0] / SINGLE / "model.safetensors")  # as the hub's client links its blobs
    run = tonnage(MAIN, ["programs/from_hub.py", SINGLE], "--gpu=a100-80", "--steps=all", env=HERE_ONLY)
    assert run.verdict == "fits", run.explain()
    assert [row for row in run.report["stand_ins"] if "tonnage/hub" in row["path"]] == []


def test_into_a_folder(tonnage, peaks_of_whole, fetch, tmp_path):
    folder = tmp_path / "new/model"
    document = fetch.document(SHARDED, "--into", folder)
    assert document["folder"] == str(folder) and not fetch.store.exists()
    fetch.store.mkdir(parents=True)  # as in all runs here: whether there is one the hook sees as it starts
    headers = tonnage(MAIN, ["programs/from_hub.py", str(folder)], "--gpu=a100-80", "--steps=all", env=HERE_ONLY)
    assert peaks(headers) == peaks_of_whole(SHARDED, MAIN) and len(headers.report["stand_ins"]) == 3
    assert fetch.document(SHARDED, "--into", folder)["already_there"]
    assert fetch.fails(SINGLE, "--into", folder)["kind"] == "folder"  # another model's is left alone
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes").write_text("mine")
    assert "is not empty" in fetch.fails(SINGLE, "--into", tmp_path / "mine")["text"]
    assert os.listdir(tmp_path / "mine") == ["notes"]


def test_serve_plan_reads_what_was_fetched(models, fetch):
    folder = fetch.document(SHARDED)["folder"]
    done = subprocess.run([TONNAGE, "serve-plan", folder, "--gpu=l4", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and models[1][SHARDED] <= json.loads(done.stdout)["weights"]["bytes"] < models[1][SHARDED] * 1.1, done


def test_screen_and_a_second_fetch(hub, fetch):
    done = fetch(SHARDED)
    assert done.returncode == 0 and done.stderr == ""
    assert "3 headers of weights, 5 whole files" in done.stdout and "HF_HUB_OFFLINE=1 tonnage run" in done.stdout and "pytorch_model.bin" in done.stdout
    hub.requests.clear()
    again = fetch.document(SHARDED, "--revision", commit_of(SHARDED))
    assert again["already_there"] and again["moved_bytes"] == 0 and not any("/resolve/" in path for _, path, *_ in hub.requests)


@pytest.mark.parametrize("wheel", CLIENTS)
def test_a_gated_model_says_what_to_do(hub, fetch, wheel):
    for token in ({}, {"HF_TOKEN": "hf_of_another"}):
        error = fetch.fails(GATED, wheel=wheel, env=token)
        assert error["kind"] == "gated" and f"accept its licence on {hub.endpoint}/{GATED}" in error["text"] and "log in" in error["text"]
    assert list(fetch.cache.rglob("*.safetensors")) == [] and fetch.parts() == []


@pytest.mark.parametrize("wheel", CLIENTS)
def test_what_is_not_there(hub, fetch, wheel):
    assert fetch.fails("acme/unknown", wheel=wheel)["kind"] == "not_found"
    assert fetch.fails("../../etc", wheel=wheel)["kind"] == "not_found"
    assert "no revision v2" in fetch.fails(SINGLE, "--revision", "v2", wheel=wheel)["text"]
    assert "pytorch_model.bin" in fetch.fails("acme/pickled", wheel=wheel)["text"]
    assert "does not describe its 40000 bytes" in fetch.fails("acme/damaged", wheel=wheel)["text"]
    assert fetch.parts() == [] and list(fetch.cache.rglob("refs/*")) == []


@pytest.mark.parametrize("wheel", CLIENTS)
def test_offline_says_what_to_bring(hub, fetch, wheel):
    for environment in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": NOWHERE}):
        error = fetch.fails(SINGLE, wheel=wheel, env=environment)
        assert error["kind"] == "no_network" and f"`tonnage fetch {SINGLE} --into DIR`" in error["text"]
        assert all(name in error["text"] for name in ("config.json", "tokenizer", "index.json", "safetensors"))
    fetch.document(SINGLE, wheel=wheel)
    known = fetch.document(SINGLE, wheel=wheel, env={"HF_HUB_OFFLINE": "1"})
    assert known["already_there"] and not known["hub_asked"]


@pytest.mark.parametrize("wheel", CLIENTS)
def test_a_server_without_ranges_is_not_read_to_the_end(hub, models, fetch, wheel):
    hub.ranges = False
    document = fetch.document(SINGLE, wheel=wheel)
    assert document["moved_bytes"] < models[1][SINGLE] / 100


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_counts_as_nothing(hub, fetch, by):
    hub.stall = "*00002-of-00003.safetensors"
    process = subprocess.Popen(fetch.words(SHARDED), env=fetch.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert hub.stalled.wait(60)
    process.send_signal(by)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == (-9 if by == signal.SIGKILL else 130), errors
    assert by == signal.SIGKILL or errors == "tonnage: interrupted: nothing was fetched\n"
    model = fetch.store / "models--acme--sharded"
    assert list(model.glob("refs/*")) == [] and [path for path in model.glob("snapshots/*") if not path.name.startswith(".tonnage-part-")] == []
    hub.stall = None
    document = fetch.document(SHARDED)
    assert not document["already_there"] and len(document["files"]) == 8 and fetch.parts() == []


def test_the_python_has_no_client(tmp_path, fetch):
    package = tmp_path / "old/huggingface_hub"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.1.0"\n')
    error = fetch.fails(SINGLE, env={"PYTHONPATH": str(tmp_path / "old")})
    assert error["kind"] == "old_client" and "0.1.0" in error["text"] and "too old" in error["text"]
    bare = [TONNAGE, "fetch", SINGLE, "--python=/usr/bin/python3"]
    done = subprocess.run(bare, capture_output=True, text=True, env={**fetch.environment, "PYTHONNOUSERSITE": "1"})
    assert done.returncode == 1 and "has no huggingface_hub" in done.stderr and done.stderr.count("\n") == 1
