# SPDX-License-Identifier: Apache-2.0
"""A server for test_requests.py, without PyTorch: `fake_server.py PORT [WORDS]` writes each request as a line of JSON to the file $TOLD.
What a path begins with says how it answers."""

import http.server
import json
import os
import pathlib
import signal
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def _answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        with open(os.environ["TOLD"], "a") as file:
            row = {"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}
            file.write(json.dumps({**row, "body": body.decode("latin-1")}) + "\n")
        kind = self.path.split("?")[0].split("/")[1]
        if kind == "drop":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.close_connection = True
        elif kind == "die":
            os._exit(7)
        elif kind == "chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (b"data: one\n\n", b"data: two\n\n"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
        elif kind == "stall":
            time.sleep(600)
        else:
            said = {"oom": b"CUDA out of memory. Tried to allocate", "gradio_api": b'{"event_id": "e1"}'}.get(kind, b"well")
            if self.command == "GET" and kind == "gradio_api":
                said = b"event: generating\ndata: null\n\nevent: %s\ndata: []\n\n" % (b"error" if "bad" in self.path else b"complete")
            self.send_response(int(kind) if kind.isdigit() else 200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    do_GET = do_POST = do_PUT = do_DELETE = _answer


if __name__ == "__main__":
    if "deaf" in sys.argv:
        time.sleep(600)
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pathlib.Path(os.environ["TOLD"] + ".ended").write_text("by SIGINT")
