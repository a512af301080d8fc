# SPDX-License-Identifier: Apache-2.0
"""`tonnage run --request` without PyTorch: what is read from files and recordings, what is sent and where, what becomes of answers, and how the
server ends."""

import http.server
import json
import pathlib
import socket
import sys
import threading

import pytest
from command import UNDECIDED, Command

SERVER = pathlib.Path(__file__).with_name("fake_server.py")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path)


class Asked:
    """A server under `tonnage run`, and what it was sent."""

    def __init__(self, command):
        self.command, self.port = command, free_port()
        self.told = command.cwd / "told"

    def __call__(self, *options, words=(), repeat=1, timeout=60):
        report = self.command.cwd / "report.json"
        self.command.env["TOLD"] = str(self.told)
        self.told.unlink(missing_ok=True)
        repeat = ("--repeat", repeat) if repeat else ()
        done = self.command("run", "--gpu=rtx3060", "--writes=allow", "--json", report, *repeat, *options, "--", sys.executable, SERVER, self.port,
                            *words, timeout=timeout)  # fmt: skip
        self.report = json.loads(report.read_text()) if report.exists() else None
        self.rows = [json.loads(line) for line in self.told.read_text().splitlines()] if self.told.exists() else []
        return done

    def file(self, text, name="asked.http"):
        path = self.command.cwd / name
        path.write_text(text.replace("PORT", str(self.port)))
        return path


@pytest.fixture
def asked(command):
    return Asked(command)


# ---- what is sent ----


def test_an_address_is_a_get(asked):
    done = asked("--request", f"http://127.0.0.1:{asked.port}/well?key=secret")
    assert [(row["method"], row["path"]) for row in asked.rows] == [("GET", "/well?key=secret")], done.stderr
    assert done.returncode == UNDECIDED  # it used no card
    [row] = asked.report["requests"]["requests"]
    assert (row["request"], row["sent"], row["answered"], row["status"]) == ("GET /well", 1, 1, 200)
    assert asked.report["requests"]["port"] == asked.port and asked.report["steps"]["stopped"] == "requests"


def test_a_file_of_requests(asked, command):
    (command.cwd / "body.json").write_text('{"from": "a file"}')
    path = asked.file(
        "@host = http://localhost:PORT\n"
        "@token=abc\n\n"
        "### the first\n# a comment\nPOST {{host}}/well/{{ token }} HTTP/1.1\nContent-Type: application/json\nHost: elsewhere\n"
        'X-Token: {{token}}\n\n{"a": 1,\n "b": "{{token}}"}\n\n'
        "### the second\nPUT {{host}}/well/two\n\n< ./body.json\n"
        "### the third\n/well/three\n"
        "### parts\nPOST /well/four\nContent-Type: multipart/form-data; boundary=xx\n\n"
        '--xx\nContent-Disposition: form-data; name="f"; filename="f"\n\n< ./body.json\n--xx--\n\n'
    )
    done = asked("--request", path)
    assert len(asked.rows) == 4, done.stderr
    first, second, third, fourth = asked.rows
    assert (first["method"], first["path"]) == ("POST", "/well/abc")
    assert first["body"] == '{"a": 1,\n "b": "abc"}' and first["headers"]["x-token"] == "abc"
    assert first["headers"]["host"] == f"localhost:{asked.port}" and first["headers"]["content-length"] == str(len(first["body"]))
    assert (second["method"], second["body"]) == ("PUT", '{"from": "a file"}')
    assert (third["method"], third["path"], third["body"]) == ("GET", "/well/three", "")
    assert fourth["body"] == ('--xx\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n{"from": "a file"}\r\n--xx--\r\n')
    lines = path.read_text().splitlines()
    begins = [number for number, line in enumerate(lines, 1) if line.split(" ")[0] in ("POST", "PUT", "/well/three")]
    assert [row["from"] for row in asked.report["requests"]["requests"]] == [f"asked.http:{number}" for number in begins]


def test_a_recording(asked):
    def entry(method, url, status=200, kind="application/json", **more):
        headers = [{"name": "Content-Type", "value": "application/json"}, {"name": ":authority", "value": "x"}]
        return {"request": {"method": method, "url": url, "headers": headers, **more},
                "response": {"status": status, "content": {"mimeType": kind}}}  # fmt: skip

    site = "https://models.example.org"
    entries = [
        entry("GET", f"{site}/", kind="text/html; charset=utf-8"),
        entry("GET", "https://elsewhere.example.org/track"),
        entry("GET", f"{site}/assets/a.js", kind="text/javascript"),
        entry("POST", f"{site}/well/generate", postData={"text": '{"prompt": "x"}'}),
        entry("GET", f"{site}/404/missing", status=404),
    ]
    path = asked.file(json.dumps({"log": {"entries": entries}}), "page.har")
    done = asked("--request", path)
    assert [(row["method"], row["path"]) for row in asked.rows] == [("POST", "/well/generate"), ("GET", "/404/missing")], done.stderr
    assert asked.rows[0]["body"] == '{"prompt": "x"}'
    assert [row["answered"] for row in asked.report["requests"]["requests"]] == [1, 1]  # 404 was recorded


def test_a_request_of_gradio_waits_for_its_result(asked):
    path = asked.file("POST http://127.0.0.1:PORT/gradio_api/call/chat\n\n{}\n###\nPOST http://127.0.0.1:PORT/gradio_api/call/bad\n\n{}\n"
                      '###\nPOST http://127.0.0.1:PORT/gradio_api/queue/join?x\n\n{"session_hash": "s1"}\n')  # fmt: skip
    done = asked("--request", path)
    assert [row["path"] for row in asked.rows] == [
        "/gradio_api/call/chat", "/gradio_api/call/chat/e1", "/gradio_api/call/bad", "/gradio_api/call/bad/e1",
        "/gradio_api/queue/join?x", "/gradio_api/queue/data?session_hash=s1"], done.stderr  # fmt: skip
    good, bad, page = asked.report["requests"]["requests"]
    assert (good["answered"], bad["answered"], page["answered"]) == (1, 0, 1) and bad["words"] == "event error"


def test_rounds(asked):
    path = asked.file("GET http://127.0.0.1:PORT/well/1\n###\nGET http://127.0.0.1:PORT/well/2\n")
    asked("--request", path, "--request", f"http://127.0.0.1:{asked.port}/chunks/3", repeat=3)
    assert [row["path"] for row in asked.rows] == ["/well/1", "/well/2", "/chunks/3"] * 3
    assert (asked.report["requests"]["sent"], asked.report["requests"]["rounds"], asked.report["requests"]["all"]) == (9, 3, True)


def test_a_path_alone_goes_to_the_port_of_the_command_line(asked):
    asked("--request", asked.file("GET /well/x\n"))
    assert [row["path"] for row in asked.rows] == ["/well/x"]


# ---- what becomes of answers ----


@pytest.mark.parametrize("path, said", [("404/x", "was answered 404: 0 of 2"), ("500/x", "was answered 500"),
                                        ("drop", "failed (the connection was dropped)"), ("oom", "failed (it tells of an out-of-memory)")])  # fmt: skip
def test_a_request_that_is_not_answered_well(asked, path, said):
    done = asked("--request", f"http://127.0.0.1:{asked.port}/{path}", repeat=2)
    assert done.returncode == UNDECIDED
    assert asked.report["findings"][0]["id"] == "requests_refused" and said in asked.report["findings"][0]["what"], done.stderr
    assert asked.report["requests"]["requests"][0]["first_failed"] == 1


def test_a_server_that_fails_in_a_request(asked):
    done = asked("--request", f"http://127.0.0.1:{asked.port}/well", "--request", f"http://127.0.0.1:{asked.port}/die", repeat=5)
    assert done.returncode == 7 and asked.report["verdict"] == "failed", done.stderr
    assert asked.report["requests"]["requests"][1]["first_failed"] == 2


def test_a_request_that_takes_too_long(asked):
    done = asked("--seconds", "2", "--request", f"http://127.0.0.1:{asked.port}/stall")
    assert done.returncode == UNDECIDED and asked.report["steps"]["stopped"] == "limit"
    assert "not answered within 2 s" in " ".join(done.stderr.split()), done.stderr


# ---- where ----


def test_a_server_that_never_listens(asked):
    done = asked("--seconds", "2", "--request", f"http://127.0.0.1:{asked.port}/x", words=("deaf",))
    assert done.returncode == UNDECIDED and asked.report["findings"][0]["id"] == "no_listener"
    assert "did not listen at any port of this machine within 2 s" in " ".join(done.stderr.split()), done.stderr


def test_a_server_that_listens_elsewhere(asked):
    done = asked("--seconds", "2", "--request", f"http://127.0.0.1:{free_port()}/x")
    assert asked.rows == [] and str(asked.port) in asked.report["findings"][0]["do"], done.stderr


def test_nobody_else_is_asked(asked, command):
    """A server that is not of the run listens at the port of the request."""
    heard = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        done = asked("--seconds", "2", "--request", f"http://127.0.0.1:{other.server_address[1]}/x")
        other.shutdown()
    assert heard == [] and asked.report["findings"][0]["id"] == "no_listener", done.stderr


def test_a_program_that_is_no_server(command):
    done = command("run", "--request", "http://localhost:1/x", "--", "true")
    assert done.returncode == UNDECIDED and "ended before it listened" in " ".join(done.stderr.split()), done.stderr


# ---- the end ----


def test_the_server_is_ended_as_by_ctrl_c(asked):
    done = asked("--request", f"http://127.0.0.1:{asked.port}/well")
    assert pathlib.Path(str(asked.told) + ".ended").read_text() == "by SIGINT", done.stderr
    assert asked.command.processes() == []


def test_a_server_that_ignores_it(asked):
    done = asked("--request", f"http://127.0.0.1:{asked.port}/well", words=("stubborn",))
    assert asked.report["host"]["seconds"] > 9 and done.returncode == UNDECIDED  # then SIGTERM
    assert asked.command.processes() == []


def test_a_server_behind_a_shell(asked, command):
    told = asked.command.env["TOLD"] = str(asked.told)
    done = command("run", "--writes=allow", "--repeat", "1", "--request", f"http://127.0.0.1:{asked.port}/well", "--", "sh", "-c",
                   f"{sys.executable} {SERVER} {asked.port}; true")  # fmt: skip
    assert pathlib.Path(told + ".ended").exists(), done.stderr
    assert command.processes() == []


# ---- wrong usage ----


@pytest.mark.parametrize("words, said", [
    (["--repeat", "3"], "--repeat goes with --request"),
    (["--repeat", "0", "--request", "http://localhost:1/"], "--repeat is 1 to"),
    (["--request", ""], "--request needs a file or an address"),
    (["--request", "http://example.org/x"], "example.org is another machine"),
    (["--request", "https://localhost:1/x"], "write http://"),
    (["--request", "http://localhost:99999/x"], "no port that can be"),
    (["--request", "missing.http"], "missing.http cannot be read"),
    (["--steps", "3", "--request", "http://localhost:1/"], "--steps does not go with --request"),
    (["--then", "true", "--request", "http://localhost:1/"], "--then does not go with --request"),
])  # fmt: skip
def test_wrong_usage(command, words, said):
    done = command("run", *words, "--", "true")
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert command.left_behind() == []


@pytest.mark.parametrize("text, said", [
    ("", "has no request"),
    ("### nothing\n", "has no request"),
    ("GET example\n", 'asked.http:1: "example" is neither an address'),
    ("GET http://localhost:1/\nno header\n", "asked.http:2: a header is written"),
    ("GET {{host}}/x\n", "nothing says what {{host}}/x is"),
    ("GET http://localhost:1/\n\n< ./missing\n", "missing cannot be read"),
])  # fmt: skip
def test_files_that_cannot_be_used(command, text, said):
    (command.cwd / "asked.http").write_text(text)
    done = command("run", "--request", "asked.http", "--", "true")
    assert done.returncode == 2 and said in done.stderr, done.stderr


@pytest.mark.parametrize("text, said", [("{", "is no HAR"), ("{}", "has no request to a server")])
def test_recordings_that_cannot_be_used(command, text, said):
    (command.cwd / "asked.har").write_text(text)
    done = command("run", "--request", "asked.har", "--", "true")
    assert done.returncode == 2 and said in done.stderr, done.stderr
