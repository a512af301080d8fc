# SPDX-License-Identifier: Apache-2.0
"""In a fork server of the tests (../fork_servers.py): several programs of one run (`:::`), each forked from it.

The program's process starts them and tells of them, as src/supervise/programs.c does; but what only comes to it alone, such as a signal, is
not passed on. What is no Python is executed.
"""

import ctypes
import os
import struct
import sys

_CWD = "TONNAGE_TEST_CWD"
_SEPARATOR = ":::"
_NEWS = struct.Struct("=4iQ")  # struct tn_news of src/supervise/internal.h
_ALL_STARTED, _STARTED, _ENDED = 0, 5, 6  # TN_NEWS_STARTED, TN_NEWS_COMMAND_STARTED, TN_NEWS_COMMAND_ENDED
_SET_NAME = 15  # PR_SET_NAME
_exit = os._exit  # the hook watches the other one


def instead(become_program, forks):
    """forks._become_program of a server."""

    def become(folder, handles, reaper, net, arguments, variables):
        if _SEPARATOR not in arguments:
            become_program(folder, handles, reaper, net, arguments, variables)
            return
        if forks._library().tn_forks_die_with(reaper) != 0:
            _exit(125)
        os.write(handles[1], _NEWS.pack(_ALL_STARTED, os.getpid(), reaper, 0, 0))  # before any other; the reaper says it again
        index, words = _start(_commands(arguments), handles[1])
        if index > 0:
            handles = [*handles[:3], os.open(os.devnull, os.O_RDONLY), *handles[4:]]
        python = words[0] == sys.executable
        if not python:
            forks._change_arguments = _change_folder
        become_program(folder, handles, os.getppid(), net, words, [*variables, "TONNAGE_PROGRAM=%d" % (index + 1)])
        if not python:
            os.execvp(words[0], words)

    return become


def _commands(arguments):
    commands = [[]]
    for word in arguments:
        if word == _SEPARATOR:
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def _start(commands, news):
    """Returns in the programs' processes only: which one it is, and its words."""
    ctypes.CDLL(None).prctl(_SET_NAME, b"tonnage-several", 0, 0, 0)
    numbers = {}
    for index, words in enumerate(commands):
        pid = os.fork()
        if pid == 0:
            return index, words
        numbers[pid] = index + 1
        os.write(news, _NEWS.pack(_STARTED, pid, 0, index + 1, 0))
    while numbers:
        pid, status, usage = os.wait3(0)
        if pid in numbers:
            os.write(news, _NEWS.pack(_ENDED, pid, status, numbers.pop(pid), usage.ru_maxrss * 1024))
    _exit(0)


def _change_folder(words):
    os.chdir(os.environ.pop(_CWD))
