# SPDX-License-Identifier: Apache-2.0
"""`tonnage explain` reads what people say: that they ran out of memory, in a sentence or a title, and not that one may.

No sentence is anybody's; each stands for one rule of src/message/told.c, or of what keeps a mention from being an error.
"""

import json
import subprocess

import pytest
from command import TONNAGE

TOLD = {
    "I get it": "When I train with two cards I get an out of memory error after the first epoch.",
    "it comes always": "I changed the batch to 1, but it always runs out of memory.",
    "progressive": "We have a small card and we are running out of memory with this model.",
    "what the program does": "Loading the second checkpoint throws CUDA out of memory on my machine.",
    "the verb": "The model trains for an hour and then it OOMs.",
    "it appears": "With 8 GB of VRAM an OOM error appears every time in my case.",
    "a title": "# CUDA out of memory in the second epoch",
    "a title alone": "# CUDA out of memory",
    "a title that asks why": "# Why does training run out of memory with a batch of 1?",
    "a title's wish ends with its clause": "# Can load the model, but when validating, an OOM error occurred",
    "a tag on a report": "# [Feature] Out of memory (OOM) error occurs with a long context",
    "a notebook": "Your session crashed after using all available RAM.",
    "words of the other order": "# Memory not enough",
    "RAPIDS": "# MemoryError: std::bad_alloc: out_of_memory: CUDA error",
}
NOT_TOLD = {
    "it may": "Large batches may cause an out of memory error.",
    "advice": "If you run out of memory, reduce the batch.",
    "how": "# How to avoid CUDA out of memory",
    "a wish": "# Handle CUDA out of memory in the data loader",
    "a title of a page": "# CUDA out of memory: causes and solutions",
    "docs": "# docs: out of memory errors",
    "a question of a list": "Q: What should I do about CUDA out of memory?",
    "a list of names": "Raised are `OutOfMemoryError`, `RuntimeError` and `ValueError`.",
    "a member": "    OUT_OF_MEMORY = 2,",
    "a comment": "// the driver says that it is out of memory\nint status = load();",
    "a table of words": '    {"CUDA out of memory", true},\n    {"nan loss", false},',
    "front matter": "---\ntitle: OOMKilled containers\ntags: [runbook]\n---\n# OOMKilled\n\nThe container was OOMKilled.",
    "never": "With this option it never runs out of memory.",
}  # fmt: skip


def errors(text):
    done = subprocess.run([TONNAGE, "explain", "-", "--json", "-"], input=text, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)["errors"]


@pytest.mark.parametrize("name", TOLD)
def test_what_is_told_is_found(name):
    assert len(errors(TOLD[name])) == 1


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_is_only_spoken_of_is_not(name):
    assert errors(NOT_TOLD[name]) == []


def test_what_a_program_printed_goes_before_what_is_told():
    found = errors("I keep getting CUDA out of memory when I train:\n\n"
                   "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB "
                   "of which 1.00 GiB is free.\n")  # fmt: skip
    assert len(found) == 1 and found[0]["fields"]["tried_bytes"] == 2 << 30


def test_a_host_that_ran_out_is_named():
    assert errors("My machine ran out of RAM and I got a MemoryError while I was reading the corpus.")[0]["likely_cause"] == "host_ram"
