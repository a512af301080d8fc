# SPDX-License-Identifier: Apache-2.0
"""Fresh systems in folders, by debootstrap, and programs started in them by bubblewrap: nothing of this machine but its kernel."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import types
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN, UBUNTU = "http://deb.debian.org/debian", "http://archive.ubuntu.com/ubuntu"
# Ubuntu's keys, where this machine has no package of them.
KEYS = f"{UBUNTU}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
KEYS_SHA256 = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
NEEDED = ["debootstrap", "bwrap"]


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


def need(*more):
    missing = [name for name in (*NEEDED, *more) if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"NO FRESH SYSTEM CAN BE MADE: {', '.join(missing) or 'root'} is missing (tools/deps long)")


def ubuntu_keys(folder):
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "keys.deb"
    with urllib.request.urlopen(KEYS, timeout=60) as answer:
        package.write_bytes(answer.read())
    assert hashlib.sha256(package.read_bytes()).hexdigest() == KEYS_SHA256
    run("dpkg", "-x", package, folder, check=True)
    return folder / "usr/share/keyrings/ubuntu-archive-keyring.gpg"


class System:
    """A distribution's smallest system, with these packages of it."""

    def __init__(self, folder, suite, packages):
        self.folder = folder
        options, mirror = ["--variant=minbase", f"--include={','.join(packages)}"], DEBIAN
        if suite in ("focal", "jammy", "noble"):
            mirror = UBUNTU
            options += ["--components=main,universe", f"--keyring={ubuntu_keys(folder.parent / 'keys')}"]
        script = pathlib.Path("/usr/share/debootstrap/scripts") / ("gutsy" if mirror == UBUNTU else "sid")
        made = run("debootstrap", *options, suite, folder, mirror, script)
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]

    def chroot(self, *words):
        done = run("chroot", self.folder, *words, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *words, shown=types.MappingProxyType({}), home=None, timeout=300):
        """In it, without a network. `shown`: {path there: path here}, to be read. `home`: the folder of an ordinary user, who can write
        nothing else; else as root."""
        binds = [word for there, here in shown.items() for word in ("--ro-bind", here, there)]
        for there in shown:  # bubblewrap makes no place in what can only be read
            (self.folder / there.lstrip("/")).mkdir(parents=True, exist_ok=True)
        user = ["--bind", self.folder, "/"]
        if home is not None:
            user = ["--ro-bind", self.folder, "/", "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL",
                    "--tmpfs", "/tmp", "--bind", home, "/home"]  # fmt: skip
        return run("bwrap", *user, "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/dev/shm", *binds, "--unshare-net",
                   "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/home" if home else "/root",
                   "--setenv", "LC_ALL", "C.UTF-8", "--chdir", "/home" if home else "/tmp", *words, timeout=timeout)  # fmt: skip
