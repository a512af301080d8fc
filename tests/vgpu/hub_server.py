# SPDX-License-Identifier: Apache-2.0
"""A hub on this machine: listing, files with ranges, large ones by way of another host as the real hub's are, revisions, a gated
repository. It counts each byte that it sends, and what it was asked."""

import hashlib
import http.server
import json
import pathlib
import re
import socketserver
import struct
import threading
import urllib.parse

TOKEN = "hf_the_one_that_accepted"
LARGE = 1 << 20


def commit_of(name, generation=0):
    return hashlib.sha1(f"{name} {generation}".encode()).hexdigest()


class Hub:
    """Repositories are folders below `root`: OWNER/NAME. gated: names of those that want TOKEN."""

    def __init__(self, root, gated=(), ranges=True):
        self.root, self.gated, self.ranges = pathlib.Path(root), set(gated), ranges
        self.sent, self.requests, self.leaked = 0, [], []
        self.stall = None  # a path whose bytes stop in the middle
        self.stalled = threading.Event()
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, headers, body=b""):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.server_hub.sent += sum(map(len, self._headers_buffer))
        self.end_headers()
        if self.command != "HEAD":
            self.write(body)

    def write(self, body):
        self.wfile.write(body)
        self.server_hub.sent += len(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub, path = self.server_hub, urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        hub.requests.append((self.command, path, self.headers.get("Range"), self.headers.get("Authorization")))
        for shape, answer in ((r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", self.listing), (r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.resolve),
                              (r"/cdn/([^/]+/[^/]+)/(.+)", self.content)):
            match = re.fullmatch(shape, path)
            if match:
                return answer(*match.groups())
        return self.send(404, {"X-Error-Code": "EntryNotFound"})

    def folder_of(self, name):
        folder = self.server_hub.root / name
        return folder if folder.is_dir() else None

    def listing(self, name, revision):
        folder = self.folder_of(name)
        if folder is None:
            return self.send(401, {"X-Error-Code": "RepoNotFound"})
        if revision not in (None, "main", commit_of(name)):
            return self.send(404, {"X-Error-Code": "RevisionNotFound"})
        files = [{"rfilename": str(path.relative_to(folder)), "size": path.stat().st_size} for path in sorted(folder.rglob("*")) if path.is_file()]
        body = json.dumps({"id": name, "modelId": name, "sha": commit_of(name), "siblings": files, "tags": [], "gated": name in self.server_hub.gated,
                           "private": False, "downloads": 0, "likes": 0}).encode()
        return self.send(200, {"Content-Type": "application/json"}, body)

    def resolve(self, name, revision, file):
        folder = self.folder_of(name)
        if name in self.server_hub.gated and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.send(403 if self.headers.get("Authorization") else 401, {"X-Error-Code": "GatedRepo"})
        path = folder / file if folder else None
        if path is None or not path.is_file():
            return self.send(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit_of(name)})
        if path.stat().st_size >= LARGE:
            return self.send(302, {"Location": f"http://localhost:{self.server_hub.port}/cdn/{name}/{file}", "X-Repo-Commit": commit_of(name)})
        return self.content(name, file)

    def content(self, name, file):
        hub, path = self.server_hub, self.folder_of(name) / file
        if self.path.startswith("/cdn/") and self.headers.get("Authorization"):
            hub.leaked.append(file)
        size = path.stat().st_size
        wish = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        begin, end = (int(wish[1]), min(int(wish[2]), size - 1) + 1) if wish and hub.ranges else (0, size)
        headers = {"Content-Length": end - begin, "ETag": f'"{commit_of(file)}"', "X-Repo-Commit": commit_of(name), "Accept-Ranges": "bytes"}
        if wish and hub.ranges:
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
        self.send(206 if wish and hub.ranges else 200, headers)
        with path.open("rb") as source:
            source.seek(begin)
            while begin < end and self.command != "HEAD":
                piece = source.read(min(65536, end - begin))
                if hub.stall and path.match(hub.stall):
                    self.write(piece[: len(piece) // 2])
                    hub.stalled.set()
                    threading.Event().wait(600)
                try:
                    self.write(piece)
                except OSError:
                    return
                begin += len(piece)


# ---- made models ----

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 12,
          "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 64, "vocab_size": 32000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
          "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "attention_bias": False,
          "torch_dtype": "bfloat16"}  # fmt: skip


def shapes():
    wide, inner, vocabulary = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["vocab_size"]
    found = {"model.embed_tokens.weight": (vocabulary, wide)}
    for i in range(CONFIG["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        found |= {f"{layer}self_attn.{name}_proj.weight": (wide, wide) for name in "qkvo"}
        found |= {f"{layer}mlp.gate_proj.weight": (inner, wide), f"{layer}mlp.up_proj.weight": (inner, wide), f"{layer}mlp.down_proj.weight": (wide, inner)}
        found |= {f"{layer}input_layernorm.weight": (wide,), f"{layer}post_attention_layernorm.weight": (wide,)}
    return found | {"model.norm.weight": (wide,), "lm_head.weight": (vocabulary, wide)}


def write_safetensors(path, tensors):
    """A file of its whole length that takes no disk: its tensors are a hole."""
    at, header = 0, {"__metadata__": {"format": "pt"}}
    for name, shape in tensors.items():
        count = 2
        for each in shape:
            count *= each
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + count]}
        at += count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return at


def make_model(folder, shards):
    """A Llama of 219 million parameters (438 MB), with a tokenizer, a README and a pickled copy that nobody needs. Its bytes of weights."""
    folder.mkdir(parents=True)
    tensors = shapes()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2}))
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"word{i}": i + 3 for i in range(1000)}}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"}}))  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}))
    (folder / "README.md").write_text("A model.\n")
    with (folder / "pytorch_model.bin").open("wb") as file:
        file.truncate(300 << 20)
    if shards == 1:
        return write_safetensors(folder / "model.safetensors", tensors)
    names, placed, total = list(tensors), {}, 0
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[i::shards]}
        placed |= dict.fromkeys(part, file)
        total += write_safetensors(folder / file, part)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": placed}))
    return total
