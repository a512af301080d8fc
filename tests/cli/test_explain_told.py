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
    "a preposition behind a title": "# CUDA out of memory upon the second validation",
    "a title that is no order": "# Small set of files fails with CUDA out of memory",
    "even if": "Even if I take one picture, CUDA out of memory appears in the first step.",
    "a killed process of one's own": "My process got killed after two epochs. I searched, and the machine had used all memory.",
    "a killed process in a title": "# Training was killed\n\nThe machine has 16 GB of RAM.",
    "Chinese": "# \u8bad\u7ec3\u65f6\u663e\u5b58\u4e0d\u8db3",
    "what memory is called": "I tried the large model and I got not enough graphics memory.",
    "who has trouble mentions it": "Hello, my evaluation came up with the 'CUDA out of memory' error. Please help.",
    "somebody else says what it is": "# Error in the second cell\n\nIt seems to be an out-of-memory (OOM) issue.",
    "a guess at the reason": "My job has a problem: it stops. I think it is caused by RAM limitation.",
    "a heading of a remedy does not make a report a page": "# Error when it runs\n\nrun.sh: line 8: 34475 Killed python main.py\n"
                                                           "This indicates that the process was ended.",
    "a tag of a bug": "# [Bug]: a large cache can cause OOM",
    "what it could not allocate": "# [1.2] crashes with cannot allocate kvcache on the GPU",
    "it started": "Two days ago a CUDA out of memory error started in both jobs.",
    "will": "My card has 24 GB, but loss.backward() will show CUDA out of memory.",
    "a number is not enough": "I run it with 32GB is not enough for it.",
    "in angle brackets": "CUDA error !!!!! <out of memory> !!!!!",
    "nvdiffrast's": "RuntimeError: Cuda error: 2[cudaMalloc(&m_gpuPtr, bytes);]",
    "Blender's": "System is out of GPU and shared host memory",
    "RAPIDS": "# MemoryError: std::bad_alloc: out_of_memory: CUDA error",
}
NOT_TOLD = {
    "it may": "Large batches may cause an out of memory error.",
    "advice": "If you run out of memory, reduce the batch.",
    "how": "# How to avoid CUDA out of memory",
    "an order in a title": "# Back off by 50% on OOM error",
    "what is possible": "# Catching a possible OutOfMemoryError.\n\nMaking the picture could cause an OutOfMemoryError. Adding checks.",
    "even if anybody's": "- jobs are run again with the same settings, even if they ran out of memory",
    "a question in general": "When does the server run out of memory?",
    "a page that speaks of itself": "As a developer, I know the problem. In this article, I will explore the issue of CUDA out of memory "
                                    "errors.",
    "who has another error": "# RuntimeError: CUDA error: an illegal memory access was encountered\n\nI met this error. You might be running "
                             "out of memory.",
    "another error of an allocation": "[MEM] cudaMalloc failed: an illegal memory access was encountered, trimming...",
    "a wish": "# Handle CUDA out of memory in the data loader",
    "a title of a page": "# CUDA out of memory: causes and solutions",
    "docs": "# docs: out of memory errors",
    "a question of a list": "Q: What should I do about CUDA out of memory?",
    "a list of names": "Raised are `OutOfMemoryError`, `RuntimeError` and `ValueError`.",
    "a member": "    OUT_OF_MEMORY = 2,",
    "a comment": "// the driver says that it is out of memory\nint status = load();",
    "a table of words": '    {"CUDA out of memory", true},\n    {"nan loss", false},',
    "front matter": "---\ntitle: OOMKilled containers\ntags: [runbook]\n---\n# OOMKilled\n\nThe container was OOMKilled.",
    "a killed process of anybody": "If a worker is killed because the memory is full, the pool starts another one.",
    "processes in a manual": "The policy for processes being killed by the Out-Of-Memory killer.",
    "a function's result": "Returns NULL if it failed to allocate memory.",
    "a member that is explained": "ENOMEM\n    Insufficient memory.",
    "the name of a branch": "I built the branch 7-outofmemoryerror-cuda-out-of-memory-in-tests yesterday.",
    "notes of a release": "v2.1\n\nWhat's new\n\n- the banner shows CUDA out of memory at once",
    "who speaks in general": "Every worker may use a share of the memory.\nIf it grows, the kernel will take the largest process.\n\n"
                             "Reason: OOMKilled\n\nYou should set a limit that is larger than the peak.",
    "a title above another error's traceback": '# Handle CUDA out of memory in the loader\n\nTraceback (most recent call last):\n'
                                               '  File "a.py", line 3, in load\n    read(path)\nValueError: no such path\n',
    "a title above a list of changes": "# Cache of buffers oom\n\n- Fix a leak\n- Add a counter\n",
    "a docstring": '    """Tells a kill from a failure.\n\n    The OOM-killer takes it, and the parent prints\n\n'
                   '        Command \'[...]\' died with <Signals.SIGKILL: 9>\n\n    and no word of memory.\n    """\n    return True\n',
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


PRINTED = {
    "RuntimeError: Could not allocate tensor with 4915840 bytes. There is not enough GPU video memory available!": "unknown",
    "[ ERROR ] Could not allocate memory": "host_ram",
    "thread 'main' panicked at 'gpu error: Validation Error\n\nCaused by:\n    In Device::create_buffer\n    Not enough memory left": "unknown",
    "ValueError: insufficient VRAM for this resolution": "unknown",
}


@pytest.mark.parametrize("text", PRINTED)
def test_words_of_programs_that_no_row_knows(text):
    found = errors(text)
    assert len(found) == 1 and found[0]["likely_cause"] == PRINTED[text]


def test_a_title_that_only_mentions_it_counts_by_the_traceback_behind():
    trace = 'Traceback (most recent call last):\n  File "run.py", line 3, in main\n    picture = sample(model)\n'
    title = '# Describe this "torch.OutOfMemoryError: CUDA out of memory."\n\n'
    assert len(errors(title + trace)) == 1
    assert errors(title) == [] and errors(title + trace + "KeyError: 'unet'\n") == []


def test_a_notebook_s_head_of_a_traceback_is_the_error_unless_its_end_says_more():
    head = "MemoryError                               Traceback (most recent call last)\n"
    frames = "".join(f"~/lib/part{i}.py in step(x)\n---> {i} f(x)\n\n" for i in range(1, 9))
    assert errors(head + frames)[0]["likely_cause"] == "host_ram"
    found = errors(head + frames + "MemoryError: std::bad_alloc: CUDA error at: /src/mr.hpp:4\n")
    assert [error["likely_cause"] for error in found] == ["unknown"]


def test_a_notebook_s_head_in_a_backtick():
    head = "`OutOfMemoryError                          Traceback (most recent call last)\n"
    assert len(errors(head + "Cell In[7], line 8\n----> 8 model.train(data=path)\n")) == 1


def test_a_docstring_ends_before_the_traceback_behind_it():
    docstring = '    """Reads a file.\n\n    It was cut off.\n'
    trace = 'Traceback (most recent call last):\n  File "a.py", line 3, in main\n    read(path)\nMemoryError\n'
    assert errors(docstring + trace)[0]["likely_cause"] == "host_ram"


@pytest.mark.parametrize("status", ["EXECUTION_FAILED", "MAPPING_ERROR"])
def test_a_status_of_cudnn_that_is_not_of_memory_counts_where_the_text_speaks_of_memory(status):
    line = f"RuntimeError: cuDNN error: CUDNN_STATUS_{status}\n"
    assert errors(line) == []
    assert [error["is_oom"] for error in errors(line + "It goes away with a smaller batch size.\n")] == ["unclear"]
    assert [error["is_oom"] for error in errors(line.replace(status, "NOT_SUPPORTED"))] == ["unclear"]


def test_a_log_s_json_is_no_code():
    found = errors('[ERROR] 2026-01-02 10:11:12,880 handler: {\n  "message": {\n    "message": "MemoryError: std::bad_alloc",\n    "more": {\n')
    assert [error["likely_cause"] for error in found] == ["host_ram"]


def test_rich_s_columns_around_words_of_comfyui():
    found = errors("10:15:06 ERROR    !!! Exception during processing !!! Allocation on device             execution.py:386\n")
    assert len(found) == 1


@pytest.mark.parametrize("words", ["I found it: the memory is not enough.", "\u5185\u5b58\u592a\u5c0f\u4e86"])
def test_a_launcher_s_signal_counts_with_a_person_s_word_of_memory(words):
    line = "torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -9) local_rank: 0 (pid: 5343) of binary:\n\n"
    assert errors(line) == [] and errors(line + words + "\n")[0]["likely_cause"] == "host_ram"


def test_the_rank_of_a_traceback_behind_a_title():
    found = errors('# CUDA out of memory\n\n[rank7]: Traceback (most recent call last):\n[rank7]:   File "a.py", line 3, in main\n')
    assert found[0]["fields"]["rank"] == 7


def test_entities_of_html_are_read():
    found = errors("Traceback (most recent call last):\n  File &quot;train.py&quot;, line 7, in main\n    loss.backward()\n"
                   "RuntimeError: CUDA out of memory.\n")  # fmt: skip
    assert found[0]["fields"]["culprit"] == "train.py:7" and found[0]["phase"] == "backward"


def test_a_title_is_the_error_below_it_whatever_its_words():
    text = "# CUDA ERROR:Out of memory\n\nIt comes at once:\nTHCudaCheck FAIL file=a.cpp line=2 error=2 : out of memory\n"
    (error,) = errors(text + 'Traceback (most recent call last):\n  File "t.py", line 3, in go\n    for x in enumerate(train_loader):\n')
    assert (error["family"], error["phase"]) == ("torch_0x", "data")


def test_code_set_apart_from_its_frame_is_code():
    text = 'Traceback (most recent call last):\n\nFile "/w/a.py", line 3, in go\n\nnet.fit(x)\n\n'
    text += 'File "/env/lib/python3.11/site-packages/exllamav2/model.py", line 4, in load\n\nself.load(x)\n'
    (error,) = errors("# torch.OutOfMemoryError: CUDA out of memory\n\n" + text)
    assert error["framework"] == "exllama"


def test_a_telling_that_nobody_claims_counts_by_the_traceback_behind_it():
    said = "# deploying the large one bursts, 爆显存\n\n"
    frames = 'Traceback (most recent call last):\n  File "/w/serve.py", line 3, in launch_model\n    go()\n'
    assert [error["phase"] for error in errors(said + frames)] == ["load"]
    assert errors("The release notes speak of OOM.\n" + frames + "ValueError: no\n") == []


def test_links_around_paths_and_numbers_of_a_notebook():
    text = "OutOfMemoryError                  Traceback (most recent call last)\n"
    text += "Cell In[6], [line 15](vscode-notebook-cell:?line=15)\n     [14](cell:14) x = 1\n---> [15](cell:15)     y = model.generate(\n"
    (error,) = errors(text)
    assert (error["phase"], error["fields"]["culprit"]) == ("generate", "Cell In[6]:15")


@pytest.mark.parametrize(
    "text",
    [
        "# Out of Memory Error. Known cures did not help\n",
        "# CUDA out of memeory while training\n",
        "# gpu内存不足\n",
        "I see that the GPU memory is insufficient. Which card do you have?\n",
        "135 | 15 | /usr/local/bin/go.sh: line 18:    36 Killed                  python3 train.py\n",
        "The run ends with `Process finished with exit code 137 (interrupted by signal 9: SIGKILL)`\nThe cpu does not have enough memory?\n",
        "# CUDA out of memory on two cards\n\nIt seems that it does not manage to allocate enough. I lowered the batch.\n",
    ],
)
def test_more_ways_to_tell(text):
    assert len(errors(text)) == 1


@pytest.mark.parametrize(
    "text", ["# overcome OOM issues when restoring\n", "# Job is not restarting after OutOfMemory Error\n", "Symptom\n\nRuntimeError: CUDA error: out of memory\n"]
)
def test_more_ways_not_to_tell(text):
    assert errors(text) == []
