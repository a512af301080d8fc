#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a wheel asks of the system it is installed on, read from its files: it may ask for glibc alone.

    tools/wheel/check.py [--glibc 2.28] WHEEL

Every ELF file inside: NEEDED may name glibc's own libraries, the dynamic loader, and what the wheel carries itself; the newest symbol version
of glibc may be no newer than --glibc. Prints one line; ends with 1 and a line a fault otherwise. (auditwheel reads only what it takes for an
extension module, and passed a wheel whose program needed libjansson.so.4.)
"""

import argparse
import io
import pathlib
import re
import sys
import zipfile

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

GLIBC = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so\.\d+|ld-linux-x86-64\.so\.2")


def version(text):
    return tuple(int(part) for part in text.split("."))


def asks(elf):
    """The libraries that an ELF file needs, and the versions of glibc that its symbols name."""
    needed, versions = set(), set()
    dynamic = elf.get_section_by_name(".dynamic")
    if dynamic is not None:
        needed = {tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"}
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for _, auxiliaries in section.iter_versions():
                versions |= {entry.name[6:] for entry in auxiliaries if re.fullmatch(r"GLIBC_[\d.]+", entry.name)}
    return needed, versions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glibc", default="2.28", metavar="VERSION")
    parser.add_argument("wheel")
    options = parser.parse_args()
    faults, newest, files = [], "2.0", 0
    with zipfile.ZipFile(options.wheel) as archive:
        own = {pathlib.PurePath(name).name for name in archive.namelist()}
        for name in archive.namelist():
            data = archive.read(name)
            if not data.startswith(b"\x7fELF"):
                continue
            files += 1
            needed, versions = asks(ELFFile(io.BytesIO(data)))
            faults += [f"{name} needs {library}" for library in sorted(needed - own) if not GLIBC.fullmatch(library)]
            newest = max([newest, *versions], key=version)
            faults += [f"{name} asks for GLIBC_{one}" for one in sorted(versions) if version(one) > version(options.glibc)]
    if files == 0:
        faults.append("no ELF file in it")
    for fault in faults:
        print(f"{options.wheel}: {fault}", file=sys.stderr)
    print(f"{files} ELF files, newest symbol GLIBC_{newest}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
