# SPDX-License-Identifier: Apache-2.0
"""A FAKE of a program that reads made-up values, without PyTorch: says through a pipe that it was started, what it was told to
assume and what it reads on stdin, and fails unless it was given the value that it wants. `python -I -X tonnage=off`.

    fake_reader.py '{"pipe": DESCRIPTOR, "wants": {"5": 1}, "document": {...}}'

wants: for lines of /x/train.py which of the offered values lets it go on; document: fields of the guest's document.
"""

import json
import os
import sys

sys.dont_write_bytecode = True  # -I does not take it from the environment
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fake_guest

FILE = "/x/train.py"
wish = json.loads(sys.argv[1])
given = {}
if os.environ.get("TONNAGE_ASSUMPTIONS"):
    with open(os.environ["TONNAGE_ASSUMPTIONS"]) as file:
        given = {str(row["line"]): row["choice"] for row in json.load(file)}
os.write(wish["pipe"], (json.dumps({"given": given, "read": sys.stdin.read()}) + "\n").encode())
print("shown", flush=True)
document = fake_guest.empty_document()
document["assumptions"] = [
    {"file": FILE, "line": int(line), "what": "truth" if line == "5" else "number", "value": "true", "bound": 0,
     "reads": 1, "choice": given.get(line, 0), "endless": False} for line in wish["wants"]
]  # fmt: skip
failed = [line for line, choice in wish["wants"].items() if given.get(line, 0) != choice]
if failed:
    document["exception"] = {"type": "ValueError", "message": "no", "at": {"file": FILE, "line": 90 + int(failed[0]), "function": "f"}}
document.update(wish.get("document", {}))
fake_guest.take([["", 1 << 20]], 0)
path = os.path.join(os.environ["TONNAGE_RUN"], "guest")
os.makedirs(path, exist_ok=True)
with open(os.path.join(path, "%d.json" % os.getpid()), "w") as file:
    json.dump(document, file)
os._exit(1 if failed else 0)
