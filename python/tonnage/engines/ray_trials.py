# SPDX-License-Identifier: Apache-2.0
"""Hands slices of trials to a Ray cluster (doc/design/0041-engines.md): `ray_trials.py TONNAGE FOLDER ADDRESS`, started by `tonnage`.

Its input has lines "slice NAME"; the end of it cancels what is out. Its output has lines "ready NODES CORES", "nodes NODES CORES",
"over NAME" and "error WORDS". Ray makes a task whose worker or node dies again by itself; a slice makes only the trials that it still lacks.
"""

import os
import queue
import socket
import subprocess
import sys
import threading
import time

RETRIES = 3  # of a slice whose node dies, by Ray itself
SECONDS_TO_ANSWER = 5  # a cluster, to a connection
SECONDS_BETWEEN = 5  # two looks at the nodes
OF_A_MACHINE = ("RAY_", "SLURM_", "SSH_", "XDG_", "DISPLAY", "HOSTNAME", "TMPDIR", "PWD", "OLDPWD")


def work(tonnage, folder, name, environment):
    """In the cluster: the trials of a slice. The worker ends with its input, thus with this process however that ends."""
    here = {key: value for key, value in os.environ.items() if key in ("HOSTNAME", "TMPDIR")}
    with open(os.path.join(folder, "log", name), "ab") as log:
        worker = subprocess.Popen([tonnage, "__trials", "--until-eof", folder, name], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=log, env={**environment, **here}, start_new_session=True)  # fmt: skip
        try:
            return worker.wait()
        finally:
            worker.stdin.close()
            worker.wait()


def answers(address):
    """False where nothing listens at HOST:PORT, for which Ray itself waits a minute."""
    host, _, port = address.rpartition(":")
    if "/" in address or not port.isdigit():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
    except OSError:
        return False
    return True


def connect(ray, address):
    """None, or why there is no cluster."""
    named = address if address != "auto" else os.environ.get("RAY_ADDRESS") or "auto"
    if not answers(named):
        return "nothing answers at %s: start a cluster (ray start --head), or name another one (--engine ray=HOST:PORT)" % named
    try:
        ray.init(address=named, log_to_driver=False, logging_level="ERROR", namespace="tonnage")
    except ConnectionError as error:
        if named == "auto":
            return "no Ray cluster runs on this machine: start one (ray start --head), or name one (--engine ray=HOST:6379)"
        return "no Ray cluster answers at %s: %s" % (named, error)
    except Exception as error:  # another version of Ray or Python, an address that is none
        return "Ray cannot be used at %s: %s" % (named, error)
    return None


class Driver:
    def __init__(self, ray, tonnage, folder, say):
        self.ray, self.say, self.tonnage, self.folder = ray, say, tonnage, folder
        self.out = {}  # reference: name of a slice
        self.orders = queue.SimpleQueue()  # names; None: the end
        self.looked = 0
        self.task = ray.remote(work).options(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(OF_A_MACHINE)}
        self.environment = ray.put(environment)

    def listen(self):
        for line in sys.stdin:
            kind, _, name = line.rstrip("\n").partition(" ")
            if kind == "slice":
                self.orders.put(name)
        self.orders.put(None)

    def look(self, word):
        nodes = sum(1 for node in self.ray.nodes() if node["Alive"])
        self.say("%s %d %d" % (word, nodes, int(self.ray.cluster_resources().get("CPU", 0))))
        self.looked = time.monotonic()

    def take_orders(self):
        """False at the end."""
        while True:
            try:
                name = self.orders.get(timeout=0 if self.out else 0.2)
            except queue.Empty:
                return True
            if name is None:
                return False
            self.out[self.task.remote(self.tonnage, self.folder, name, self.environment)] = name

    def collect(self):
        ready, _ = self.ray.wait(list(self.out), num_returns=1, timeout=0.2)
        for reference in ready:
            name = self.out.pop(reference)
            try:
                status = self.ray.get(reference)
                if status != 0:
                    print("%s: a worker ended with %s" % (name, status), file=sys.stderr, flush=True)
            except Exception as error:
                print("%s: %s" % (name, error), file=sys.stderr, flush=True)
            self.say("over %s" % name)

    def run(self):
        threading.Thread(target=self.listen, daemon=True).start()
        self.look("ready")
        while self.take_orders():
            if self.out:
                self.collect()
            if time.monotonic() - self.looked > SECONDS_BETWEEN:
                self.look("nodes")
        for reference in self.out:
            self.ray.cancel(reference, force=True)
        self.ray.shutdown()


def main(tonnage, folder, address):
    words = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Ray prints is no word of ours

    def say(line):
        print(" ".join(line.split()), file=words, flush=True)

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    why = connect(ray, address)
    if why is not None:
        say("error " + why)
        return 1
    Driver(ray, tonnage, folder, say).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
