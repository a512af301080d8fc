#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the C source that holds the page: what comes before its data, and what comes after.

    build_page.py OUTPUT.c        from page.html, page.css and the scripts beside this file

The style and the script stand in the page itself; the policy in its head lets nothing else run, by their hashes.
"""

import base64
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
# In the order in which they need one another.
SCRIPTS = ["dom.js", "words.js", "data.js", "colours.js", "table.js", "chart.js", "timeline.js", "flame.js",
           "holders.js", "segments.js", "sections.js", "changes.js", "batches.js", "frontier.js", "page.js"]
BYTES_A_LINE = 24


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy(style, script):
    """Nothing from anywhere, no other script or style than these, and no markup made from text."""
    return "; ".join(["default-src 'none'", f"script-src {hash_of(script)}", f"style-src {hash_of(style)}",
                      "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
                      "trusted-types 'none'"])


def script_text():
    parts = ((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return "(() => {\n'use strict';\n" + "".join(parts) + "})();\n"


def page_text():
    style = (HERE / "page.css").read_text(encoding="utf-8")
    script = script_text()
    for text, end in (style, "</style"), (script, "</script"):
        if end in text.lower() or "<!--" in text:
            raise SystemExit(f"build_page.py: {end} or a comment of HTML inside the page's own text")
    page = (HERE / "page.html").read_text(encoding="utf-8")
    for name, text in ("policy", policy(style, script)), ("style", style), ("script", script):
        page = page.replace("{{" + name + "}}", text)
    return page


def array(name, text):
    data = text.encode()
    rows = (data[at:at + BYTES_A_LINE] for at in range(0, len(data), BYTES_A_LINE))
    body = "\n".join("\t" + ",".join(map(str, row)) + "," for row in rows)
    return f"const unsigned char {name}[] = {{\n{body}\n}};\nconst size_t {name}_size = sizeof({name});\n"


def main():
    before, after = page_text().split("{{data}}")
    pathlib.Path(sys.argv[1]).write_text(
        '/* Made by src/report/page/build_page.py. */\n#include "report/page_template.h"\n\n'
        + "\n".join([array("tn__page_before", before), array("tn__page_after", after)]), encoding="utf-8")


if __name__ == "__main__":
    main()
