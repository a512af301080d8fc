# SPDX-License-Identifier: Apache-2.0
"""tn__page_write: nothing in the data ends its element; the policy names exactly the page's own style and script."""

import base64
import hashlib
import html
import json
import re
import subprocess

import page_rules
import scenes


def parts(path):
    return page_rules.parts_of(path.read_text(encoding="utf-8"))


def test_data_comes_back_as_it_was(build):
    data = {"a": [scenes.HOSTILE, "<!--<script>", "</SCRIPT", "plain"], scenes.HOSTILE: 1, "é": "\u2028<"}
    _, written, after = parts(build(data))
    assert "<" not in written
    assert json.loads(written) == data
    assert after.lstrip().startswith("<script>")


def test_page_without_data_and_with_much(build):
    text = json.dumps("<" * 300_000 + "x" * 300_000)
    for data in "", text:
        _, written, _ = parts(build(data.encode()))
        assert written == data.replace("<", "\\u003c")


def test_policy_names_what_is_in_the_page(build):
    text = build({}).read_text(encoding="utf-8")
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))

    def hash_of(tag):
        (body,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        return "'sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() + "'"

    assert rules == {
        "default-src": "'none'", "script-src": hash_of("script"), "style-src": hash_of("style"), "base-uri": "'none'",
        "form-action": "'none'", "require-trusted-types-for": "'script'", "trusted-types": "'none'"}


def test_page_names_no_other_place(build):
    text = build({}).read_text(encoding="utf-8")
    named = re.findall(r"https?:[^'\"]*|\bsrc=|@import|url\(", text)
    assert named == ["http://www.w3.org/2000/svg"]  # the name of SVG's elements, which no browser asks for
    assert re.findall(r'href="([^"]*)"', text) == ["#headline"]


def test_writing_that_fails_is_an_error(page_build):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([page_build], input=b"{}", stdout=full, timeout=60)
    assert done.returncode == 1
