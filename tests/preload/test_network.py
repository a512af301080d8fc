# SPDX-License-Identifier: Apache-2.0
"""The network wall, seen from outside: a server that is no part of the run counts what arrives at it.

Every road of sending is tried twice: after the first kernel, when nothing may arrive, and with --network allow, when the
same program must reach the server (or the road proves nothing). "The first kernel" is told to the wall as the virtual GPU
tells it, so that no test needs torch; test_uploads.py and the bench run real ones.
"""
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
NOBODY = 65534
BIG = 200_000
MORE_THAN_HOSTS = 260  # connections: the wall has rows for 256 hosts (TN_NETWORK_HOSTS)
PACE = 64 << 10  # bytes a second that a connection may send after the first kernel

KERNEL = "import ctypes; ctypes.CDLL(None).tn_preload_kernels_ran()\n"


UDP_LITE = 136


class ProtocolNotHere(Exception):
    """The kernel has no such protocol."""


FENCE = b"the test's own connection"


class Server:
    """Takes TCP and UDP at one port of 127.0.0.1 and ::1; answers HTTP; keeps every byte that came."""

    def __init__(self):
        self.got = []
        self.connections = self.active = self.fences = 0
        self.closing = False
        self.lock = threading.Condition()
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    self.take()
                finally:
                    with outer.lock:
                        outer.active -= 1
                        outer.lock.notify_all()

            def take(self):
                rest = b""
                self.request.settimeout(5)
                with contextlib.suppress(OSError):
                    while True:
                        part = self.request.recv(65536)
                        if not part:
                            return
                        if part == FENCE:
                            with outer.lock:
                                outer.connections -= 1
                                outer.fences += 1
                            return
                        outer.got.append(part)
                        rest += part
                        while b"\r\n\r\n" in rest:
                            head, _, rest = rest.partition(b"\r\n\r\n")
                            rest = b"" if b"ontent-" in head else rest
                            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

        class Threads(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

            def verify_request(self, request, client_address):
                """In the thread that accepts, so that whoever came first is counted first."""
                with outer.lock:
                    outer.connections += 1
                    outer.active += 1
                return True

        class Threads6(Threads):
            address_family = socket.AF_INET6

        self.servers, self.datagrams = [], []
        while not self.servers:
            self._take_port(lambda address: Threads(address, Handler), lambda address: Threads6(address, Handler))
        self.folder = tempfile.mkdtemp(prefix="tonnage-network-")
        os.chmod(self.folder, 0o755)
        self.path = os.path.join(self.folder, "daemon")

        class Local(Threads):
            address_family = socket.AF_UNIX

        self.servers.append(Local(self.path, Handler))
        self.docker = os.path.join(self.folder, "docker.sock")
        self.servers.append(Local(self.docker, Handler))
        self.abstract = "tonnage-test-%d" % self.port
        self.servers.append(Local("\0" + self.abstract, Handler))
        for path in (self.path, self.docker):
            os.chmod(path, 0o777)
        for server in self.servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.datagram = os.path.join(self.folder, "datagrams")
        self._take_datagrams(socket.AF_UNIX, self.datagram)
        os.chmod(self.datagram, 0o777)
        self.readers = [threading.Thread(target=self._read, args=(udp,), daemon=True) for udp in self.datagrams]
        for reader in self.readers:
            reader.start()

    def _take_port(self, tcp, tcp6):
        """Takes one port by TCP and UDP of both addresses. Nothing is taken where another program has one of these: the next try is another port."""
        servers = [tcp(("127.0.0.1", 0))]
        self.port = servers[0].server_address[1]
        here, here6 = ("127.0.0.1", self.port), ("::1", self.port)
        try:
            self._take_datagrams(socket.AF_INET, here)
            if has_ipv6():
                servers.append(tcp6(here6))
                self._take_datagrams(socket.AF_INET6, here6)
            with contextlib.suppress(ProtocolNotHere):
                self._take_datagrams(socket.AF_INET, here, UDP_LITE)
        except OSError:
            for taken in servers:
                taken.server_close()
            while self.datagrams:
                self.datagrams.pop().close()
            return
        self.servers += servers

    def _take_datagrams(self, family, address, protocol=0):
        try:
            udp = socket.socket(family, socket.SOCK_DGRAM, protocol)
        except OSError as error:
            raise ProtocolNotHere from error
        try:
            udp.bind(address)
        except OSError:
            udp.close()
            raise
        self.datagrams.append(udp)

    def _read(self, udp):
        while True:
            part = udp.recv(65536)
            if self.closing:
                return
            with self.lock:
                self.got.append(part)
                self.lock.notify_all()

    def settle(self):
        """Waits for all that was sent until now: what we send ourselves comes behind it, and connections end."""
        wanted = self.fences + len(self.servers)
        for server in self.servers:
            with socket.socket(server.address_family) as fence:
                fence.connect(server.server_address)
                fence.sendall(FENCE)
        with self.lock:
            assert self.lock.wait_for(lambda: self.fences == wanted and self.active == 0, 30)
        for udp in self.datagrams:
            with socket.socket(udp.family, socket.SOCK_DGRAM, udp.proto) as fence:
                word = b"fence %d" % id(fence)
                with self.lock:
                    for _ in range(30):  # datagrams may be lost, on loopback, too
                        fence.sendto(word, udp.getsockname())
                        if self.lock.wait_for(lambda: word in self.got, 1):
                            break
                    self.got[:] = [part for part in self.got if part != word]

    def forget(self):
        self.got.clear()
        self.connections = 0

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
        self.closing = True
        for udp, reader in zip(self.datagrams, self.readers, strict=True):
            while reader.is_alive():  # a socket whose reader waits keeps its port even when it is closed
                with socket.socket(udp.family, socket.SOCK_DGRAM, udp.proto) as last:
                    last.sendto(b"", udp.getsockname())
                reader.join(1)
            udp.close()
        shutil.rmtree(self.folder)


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture(scope="session")
def tools():
    """C programs that send, in a folder that everybody may read."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tonnage-network-tools-"))
    folder.chmod(0o755)
    for name, options in (("roads", []), ("roads-static", ["-static"])):
        subprocess.run(["cc", "-O1", "-pthread", *options, "-o", folder / name, HERE / "network_roads.c"], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def walls(tools):
    """A program that takes a wall of the kernel away, for what it starts."""
    subprocess.run(["cc", "-O1", "-o", tools / "no-wall", HERE / "no_wall.c"], check=True)
    return tools / "no-wall"


def as_nobody():
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


@functools.cache
def python_for_everybody():
    for python in (sys.executable, "/usr/bin/python3"):
        words = [*as_nobody(), "sh", "-c", '"$0" -c "import ctypes"', python]
        if os.getuid() == 0 and subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def run(server, tools, code, *options, nobody=False, shell=False, wall=(), **more):
    """`tonnage run` of a program; returns the finished command and its report."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        report = os.path.join(folder, "report.json")
        python = python_for_everybody() if nobody else sys.executable
        env = {**os.environ, "TMPDIR": folder, "HOST": "127.0.0.1", "PORT": str(server.port), "URL": f"http://127.0.0.1:{server.port}",
               "SOCKET": server.path, "DOCKER": server.docker, "DATAGRAM": server.datagram, "ABSTRACT": server.abstract,
               "ROADS": str(tools / "roads"), "PYTHON": python,
               "HOME": folder, "no_proxy": "*", "NO_PROXY": "*"}
        for name in [n for n in env if n.lower() in ("http_proxy", "https_proxy", "all_proxy")]:
            env.pop(name)
        words = ["sh", "-c", code] if shell else [python, "-c", code]
        command = [*map(str, wall), str(TONNAGE), "run", "--gpu", "t4", "--json", report, *options, "--", *words]
        done = subprocess.run(as_nobody() + command if nobody else command, env=env, cwd=folder, capture_output=True,
                              text=True, timeout=120, **more)
        document = json.loads(pathlib.Path(report).read_text()) if os.path.exists(report) else None
    return done, document


def python_of(code):
    return "import os, socket\nHOST, PORT, URL = os.environ['HOST'], int(os.environ['PORT']), os.environ['URL']\nM = b'made up ' * 20\n" + code


# A name, and what it sends: Python after the wall has closed.
PYTHON = {
    "connect, send": "s = socket.create_connection((HOST, PORT)); s.send(M)",
    "connect, sendall": "s = socket.create_connection((HOST, PORT)); s.sendall(M)",
    "connect_ex": "s = socket.socket(); r = s.connect_ex((HOST, PORT)); s.send(M)",
    "not blocking": "import select\ns = socket.socket(); s.setblocking(False); s.connect_ex((HOST, PORT)); select.select([], [s], [], 5); s.send(M)",
    "IPv6": "s = socket.create_connection(('::1', PORT)); s.send(M)",
    "IPv4 in IPv6": "s = socket.socket(socket.AF_INET6); s.connect(('::ffff:127.0.0.1', PORT)); s.send(M)",
    "another name of this machine": "s = socket.create_connection(('localhost', PORT)); s.send(M)",
    "any address": "s = socket.create_connection(('0.0.0.0', PORT)); s.send(M)",
    "fast open": "s = socket.socket(); s.sendto(M, 0x20000000, (HOST, PORT))",
    "UDP sendto": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(M, (HOST, PORT))",
    "UDP connected": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((HOST, PORT)); s.send(M)",
    "UDP sendmsg": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendmsg([M], [], 0, (HOST, PORT))",
    "UDP over IPv6": "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.sendto(M, ('::1', PORT))",
    "UDP os.write": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((HOST, PORT)); os.write(s.fileno(), M)",
    "UDP bound to port 0": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 0)); s.sendto(M, (HOST, PORT))",
    "urllib POST": "import urllib.request as u; u.urlopen(URL, data=M)",
    "urllib GET": "import urllib.request as u; u.urlopen(URL + '/?made=up')",
    "http.client PUT": "import http.client as h; c = h.HTTPConnection(HOST, PORT); c.request('PUT', '/', M)",
    "xmlrpc": "import xmlrpc.client as x\ntry: x.ServerProxy(URL).made_up()\nexcept x.Error: pass",
    "asyncio": "import asyncio\nasync def f():\n  r, w = await asyncio.open_connection(HOST, PORT); w.write(M); await w.drain()\nasyncio.run(f())",
    "logging's SocketHandler": "import logging.handlers as l\nh = l.SocketHandler(HOST, PORT); h.send(M)\nassert h.sock",
    "logging's syslog": "import logging, logging.handlers as l\nh = l.SysLogHandler((HOST, PORT)); h.emit(logging.LogRecord('a', 1, 'b', 1, 'made up', (), None))\n",
    "a thread": "import threading\nt = threading.Thread(target=lambda: socket.create_connection((HOST, PORT)).send(M)); t.start(); t.join()",
    "a forked child": "p = os.fork()\nif p == 0:\n  socket.create_connection((HOST, PORT)).send(M); os._exit(0)\nos.waitpid(p, 0)",
    "a child process": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import os, socket; socket.create_connection((os.environ[\"HOST\"], int(os.environ[\"PORT\"]))).send(b\"made up\" * 9)'])",
    "a child without hook": "import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', 'import os, socket; socket.create_connection((os.environ[\"HOST\"], int(os.environ[\"PORT\"]))).send(b\"made up\" * 9)'])",
    "a child with an empty environment": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import socket; socket.create_connection((\"127.0.0.1\", %d)).send(b\"made up\" * 9)' % PORT], env={})",
    "a daemon's socket": "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['SOCKET']); s.send(M)",
    "docker's socket": "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['DOCKER']); s.send(M)",
    "ctypes of libc": "import ctypes\nl = ctypes.CDLL(None, use_errno=True); s = socket.socket(); import struct\na = struct.pack('=HH4s8x', 2, socket.htons(PORT), socket.inet_aton(HOST)); l.connect(s.fileno(), a, 16); l.send(s.fileno(), M, len(M), 0)",
}
# Shell, after the wall has closed.
SHELL = {
    "curl -d": "curl -s -m 9 -d made=up $URL",
    "curl -T": "echo made up > f; curl -s -m 9 -T f $URL/f",
    "curl GET": "curl -s -m 9 $URL/?made=up",
    "bash /dev/tcp": "bash -c 'echo made up > /dev/tcp/127.0.0.1/'$PORT",
    "bash /dev/udp": "bash -c 'echo made up > /dev/udp/127.0.0.1/'$PORT",
    "git push": "git init -q r && cd r && git -c user.name=a -c user.email=b@c commit -q --allow-empty -m a && git push $URL/r.git HEAD:x",
    "ssh": "ssh -o BatchMode=yes -o ConnectTimeout=9 -o StrictHostKeyChecking=no -p $PORT a@127.0.0.1 cat",
}
NEEDS = {"curl": "curl", "git": "git", "ssh": "ssh", "bash": "bash"}

CLOSE = "$PYTHON -c 'import ctypes; ctypes.CDLL(None).tn_preload_kernels_ran()'; "


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as made:
            made.bind(("::1", 0))
    except OSError:
        return False
    return True


def arrived(server):
    return b"".join(server.got)


@pytest.mark.parametrize("user", ["self", "nobody"])
@pytest.mark.parametrize("name", [*PYTHON, *SHELL])
def test_nothing_is_sent_after_the_first_kernel(server, tools, name, user):
    """Every road reaches the server where the wall is open, and none where it is closed; the report counts it."""
    tool = NEEDS.get(name.split()[0])
    if tool and not shutil.which(tool):
        pytest.skip(f"no {tool}")
    if user == "nobody" and not python_for_everybody():
        pytest.skip("not root, or no Python that everybody may run")
    code, shell = (CLOSE + SHELL[name], True) if name in SHELL else (python_of(KERNEL + PYTHON[name]), False)
    if "IPv6" in name and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    for _ in range(3):  # a datagram may be lost
        if not server.connections and not server.got:
            run(server, tools, code, "--network", "allow", nobody=user == "nobody", shell=shell)
            server.settle()
    assert server.connections or server.got
    server.forget()
    done, document = run(server, tools, code, nobody=user == "nobody", shell=shell)
    assert not server.got and not server.connections, (arrived(server)[:200], done.stderr[-500:])
    held = document["network"]["held_back"]
    assert document["network"]["mode"] == "closed" and sum(item["count"] for item in held) >= 1, held
    assert "--network allow" in " ".join(done.stderr.split())


def roads_of(tools):
    return subprocess.run([tools / "roads"], capture_output=True, text=True, check=True).stdout.split()


ABSENT_HERE = {"rings"}  # is closed by the file wall's filter in any run


def take(server, tools, kind, close, *options, **more):
    """Takes every road in one run. Returns the roads that reached a server, the report and what was said."""
    script = (CLOSE if close else "") + f"for r in {' '.join(roads_of(tools))}; do {tools / kind} $r $PORT; test $? = 3 && echo absent $r; done"
    done, document = run(server, tools, script, *options, shell=True, **more)
    server.settle()
    absent = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("absent")}
    return {name.decode() for name in re.findall(rb"made up by (\w+)", arrived(server))}, absent, document, done


@pytest.mark.parametrize("user", ["self", "nobody"])
@pytest.mark.parametrize("kind", ["roads", "roads-static"])
def test_no_road_of_c_leads_out_after_the_first_kernel(server, tools, kind, user):
    """By libc, and by a static program, whose calls the reaper decides about; as root and as an ordinary user."""
    nobody = user == "nobody"
    if nobody and not python_for_everybody():
        pytest.skip("not root, or no Python that everybody may run")
    missing = set(roads_of(tools)) - ABSENT_HERE
    for _ in range(3):  # a datagram may be lost
        if missing:
            reached, absent, _, done = take(server, tools, kind, False, "--network", "allow", nobody=nobody)
            missing -= reached | absent
    assert not missing, done.stderr[-2000:]
    server.forget()
    reached, _, document, done = take(server, tools, kind, True, nobody=nobody)
    assert reached == set() and server.connections == 0, (reached, done.stderr[-2000:])
    assert document["network"]["raw_calls"] is True
    assert sum(item["count"] for item in document["network"]["held_back"]) >= len(roads_of(tools)) - len(absent) - 3


@pytest.mark.parametrize("kind", ["roads", "roads-static"])
@pytest.mark.parametrize("name", ["much_on_kept", "much_on_moved", "much_on_new", "much_after_many", "reading"])
def test_a_known_host_may_be_read_from_and_is_sent_little(server, tools, kind, name):
    """Of a static program's sending no call is seen: the reaper looks at its connections, as often as it gets a core, and until then
    the kernel's pacing holds."""
    began = time.monotonic()
    code = f'CLOSE="{CLOSE.rstrip("; ")}"; export CLOSE; exec {tools / kind} {name} $PORT'
    done, document = run(server, tools, code, shell=True)
    seconds = time.monotonic() - began
    server.settle()
    held = document["network"]["held_back"]
    if name == "reading":
        assert held == [] and done.returncode == 12 and len(arrived(server)) >= 200 * 18, done.stderr
    else:
        assert [item["what"] for item in held] == ["data"] and len(arrived(server)) < 100_000 + PACE * seconds and done.returncode != 12


def test_without_landlock_the_network_wall_stands(server, tools, walls):
    reached, _, document, _ = take(server, tools, "roads-static", True, wall=[walls, "landlock"])
    assert reached == set() and server.connections == 0 and document["network"]["raw_calls"] is True


def test_without_seccomp_only_the_c_library_is_held_and_that_is_said(server, tools, walls):
    direct = {"raw_connect", "raw_datagram", "fast_open_message", "old_connect", "old_wrapped_connect", "old_wrapped_send", "rings"}
    reached, _, document, done = take(server, tools, "roads", True, wall=[walls, "seccomp"])
    assert reached <= direct and document["network"]["raw_calls"] is False
    assert "is known to have changed nothing real, and sent nothing" in " ".join(done.stderr.split())


def test_with_writes_allowed_static_programs_are_held(server, tools):
    reached, _, document, _ = take(server, tools, "roads-static", True, "--writes", "allow")
    assert reached == set() and server.connections == 0 and document["network"]["raw_calls"] is True


# ---- what must still work ----

READS = {
    "a host that was read from": """
import urllib.request as u
assert u.urlopen(URL).read() == b'hello'
%(kernel)s
for i in range(%(many)d): assert u.urlopen(URL + '/shard-%%d' %% i).read() == b'hello'
""",
    "a kept connection": """
import http.client as h
c = h.HTTPConnection(HOST, PORT)
c.request('GET', '/'); assert c.getresponse().read() == b'hello'
%(kernel)s
for i in range(100): c.request('GET', '/%%d' %% i); assert c.getresponse().read() == b'hello'
""",
    "a server of the run, over a name of this machine": """
import threading, http.server as h
class H(h.BaseHTTPRequestHandler):
  def do_POST(self):
    n = int(self.headers['content-length']); assert len(self.rfile.read(n)) == n
    self.send_response(200); self.send_header('content-length', '200000'); self.end_headers(); self.wfile.write(b'x' * 200000)
  def log_message(self, *a): pass
s = h.ThreadingHTTPServer(('', 0), H); threading.Thread(target=s.serve_forever, daemon=True).start()
%(kernel)s
import urllib.request as u
for name in ('127.0.0.1', 'localhost', socket.gethostname()):
  try: a = socket.gethostbyname(name)
  except OSError: continue
  assert len(u.urlopen('http://%%s:%%d' %% (a, s.server_port), data=b'y' * 300000).read()) == 200000, name
""",
    "a listener that was made after the first kernel, in another process": """
%(kernel)s
import subprocess, sys
p = subprocess.Popen([sys.executable, '-c', 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); c, a = s.accept(); n = 0\\nwhile n < 1000000: n += len(c.recv(65536))\\nc.sendall(b"k" * 100000)'], stdout=subprocess.PIPE, text=True)
c = socket.create_connection(('127.0.0.1', int(p.stdout.readline())))
c.sendall(b'x' * 1000000)
n = 0
while n < 100000: n += len(c.recv(65536))
""",
    "a server of the run is reached by a static program, and one by the other": """
%(kernel)s
import subprocess
s = socket.create_server(('127.0.0.1', 0)); got = []
for road in ('write', 'thread', 'raw_connect', 'duplicate'):
  p = subprocess.Popen([os.environ['ROADS'] + '-static', road, str(s.getsockname()[1])]); c, a = s.accept(); assert c.recv(99)[:7] == b'made up'; assert p.wait() == 0
""",
    "looking up names in another libc's way": """
%(kernel)s
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('127.0.0.1', 53)); s.send(b'x')
""",
    "datagrams inside the run": """
%(kernel)s
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(('127.0.0.1', 45999)); b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
b.sendto(b'x', ('127.0.0.1', 45999)); m, back = a.recvfrom(9); a.sendto(b'y', back); assert b.recv(9) == b'y'
""",
    "sockets of the run with names": """
%(kernel)s
import multiprocessing as m
a, b = m.Pipe(); a.send(b'x' * 50000)
s = socket.socket(socket.AF_UNIX); s.bind('here'); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect('here'); d, _ = s.accept(); c.sendall(b'x' * 50000); assert d.recv(9)
""",
    "socket pairs, pipes and files": """
%(kernel)s
a, b = socket.socketpair(); a.sendall(b'x' * 50000); r, w = os.pipe(); os.write(w, b'x' * 60000); open('f', 'wb').write(b'x' * 500000)
s = socket.socket(); f = s.fileno(); s.close(); os.close(os.open('f', os.O_WRONLY)); fd = os.open('f', os.O_WRONLY); assert os.write(fd, b'x' * 100000) == 100000
""",
    "asking for the own address": """
%(kernel)s
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('192.0.2.1', 9)); assert s.getsockname()[0] not in ('', '0.0.0.0')
""",
    "looking names up": """
%(kernel)s
assert socket.getaddrinfo('localhost', 80)
""",
}


@pytest.mark.parametrize("name", READS)
def test_reading_and_the_runs_own_connections_go_on(server, tools, name):
    done, document = run(server, tools, python_of(READS[name] % {"kernel": KERNEL.strip(), "many": MORE_THAN_HOSTS}))
    assert done.returncode in (0, 12) and "Traceback" not in done.stderr, done.stderr[-1500:]
    assert document["network"]["held_back"] == []


GETS = {
    # what fetches, and what it does with the error; the host that the report must name as that of a refused download
    "a fetch, swallowed": ("import urllib.request as u\ntry: u.urlretrieve(URL + '/w.pt')\nexcept OSError: pass", True),
    "a fetch that ends the program": ("import urllib.request as u; u.urlretrieve(URL + '/w.pt')", True),
    "a request that ends the program": ("import urllib.request as u; u.urlopen(URL + '/w.pt')", True),
    "a request for a newer version, swallowed": ("import urllib.request as u\ntry: u.urlopen(URL + '/version')\nexcept OSError: pass", False),
    "an upload that ends the program": ("import urllib.request as u; u.urlopen(URL, data=M)", False),
}


@pytest.mark.parametrize("name", GETS)
def test_a_refused_download_is_told_from_others(server, tools, name):
    words, named = GETS[name]
    _, document = run(server, tools, python_of(KERNEL + words))
    assert document["network"]["download_refused"] == ("127.0.0.1" if named else None)
    assert document["network"]["held_back"] and not server.got
    if named:
        assert document["verdict"] == "undecided" and "127.0.0.1" in document["findings"][0]["what"]


def test_before_the_first_kernel_no_download_is_refused(server, tools):
    """A machine without that server: the program's own trouble."""
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    _, document = run(server, tools, python_of("import urllib.request as u; u.urlretrieve('http://127.0.0.1:%d/w')" % port))
    assert document["network"]["download_refused"] is None and document["verdict"] == "failed"


BOUNDED = {
    "much on a kept connection": "c.sendall(b'x' * %d)" % BIG,
    "much in small pieces": "for i in range(%d // 500): c.send(b'x' * 500)" % BIG,
    "much by write": "n = 0\nwhile n < %d: n += os.write(c.fileno(), b'x' * 4000)" % BIG,
    "much by sendmsg": "c.sendmsg([b'x' * 4000] * 50)",
    "much by sendfile": "open('f', 'wb').write(b'x' * %d); os.sendfile(c.fileno(), os.open('f', os.O_RDONLY), 0, %d)" % (BIG, BIG),
    "much in a forked child": "p = os.fork()\nif p == 0:\n  c.sendall(b'x' * %d)\n  os._exit(0)\nassert os.waitpid(p, 0)[1] == 0" % BIG,
    "much over a duplicate": "d = os.dup(c.fileno()); n = 0\nwhile n < %d: n += os.write(d, b'x' * 4000)" % BIG,
    "a PUT": "c.send(b'PUT /model HTTP/1.1\\r\\nContent-Length: 9\\r\\n\\r\\nmade up..')",
    "a POST": "c.send(b'POST /metrics HTTP/1.1\\r\\nContent-Length: 9\\r\\n\\r\\nmade up..')",
    "a DELETE": "c.send(b'DELETE /repository HTTP/1.1\\r\\n\\r\\n')",
    "much on a new connection": "c = socket.create_connection((HOST, PORT)); c.sendall(b'x' * %d)" % BIG,
    "a POST on a new connection": "import urllib.request as u; u.urlopen(URL, data=M)",
}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_sent_to_a_known_host_is_bounded(server, tools, name):
    code = """
c = socket.create_connection((HOST, PORT)); c.send(b'GET / HTTP/1.1\\r\\n\\r\\n'); assert c.recv(999)
%s
""" % KERNEL
    done, document = run(server, tools, python_of(code + BOUNDED[name]))
    assert len(arrived(server)) < 40_000 and b"made up" not in arrived(server) and b"DELETE" not in arrived(server)
    assert [item["what"] for item in document["network"]["held_back"]] == ["data"]
    assert document["network"]["held_back"][0]["name"] == "127.0.0.1:%d" % server.port
    assert done.returncode != 0, "the program was told"


def test_before_the_first_kernel_everything_is_sent(server, tools):
    done, document = run(server, tools, python_of("import urllib.request as u; u.urlopen(URL, data=M)"))
    assert b"made up" in arrived(server) and document["network"]["held_back"] == [], done.stderr


def test_container_daemons_are_refused_from_the_start(server, tools):
    done, document = run(server, tools, python_of("s = socket.socket(socket.AF_UNIX); s.connect(os.environ['DOCKER'])"))
    assert "PermissionError" in done.stderr and server.connections == 0
    assert document["network"]["held_back"][0]["name"].endswith("docker.sock")


def test_with_writes_allowed_the_wall_stands(server, tools):
    """Two promises, two switches."""
    code = python_of(KERNEL + PYTHON["a child with an empty environment"])
    run(server, tools, code, "--writes", "allow")
    assert not server.got and server.connections == 0


def test_a_socket_as_output_is_left_alone(server, tools):
    """A log that is a socket of whoever started tonnage is not a connection of the program's."""
    listener = socket.create_server(("127.0.0.1", 0))
    theirs = socket.create_connection(listener.getsockname())
    ours, _ = listener.accept()
    code = KERNEL + "import os; os.write(1, b'line\\n' * 20000); os.write(1, b'PUT / HTTP/1.1\\r\\n\\r\\n')"
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([str(TONNAGE), "run", "--gpu", "t4", "--quiet", "--", sys.executable, "-c", code], stdout=theirs.fileno(),
                                   stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": folder})
        theirs.close()
        ours.settimeout(60)
        seen = 0
        while part := ours.recv(65536):
            seen += len(part)
        process.wait(60)
    assert seen == 5 * 20000 + len(b"PUT / HTTP/1.1\r\n\r\n")
