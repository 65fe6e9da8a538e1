"""Running `notyet install` as a person would: in this process, in others, and on a terminal."""

import os
import pty
import re
import select
import subprocess
import sys

from hook_runs import ENTRY, clean_environ

_PERSON = """
from notyet.cli import person; person.inside_agent = lambda _: ''
import sys; from notyet.cli.main import main; sys.exit(main(sys.argv[1:]))
"""


_QUESTION = re.compile(rb"\[y/N\]|\[Y/n\]|\n> ")


def command_line(*argv):
    """Return how a person's `notyet` is run in a process of its own."""
    return [sys.executable, "-c", _PERSON, *argv]


def environment(**more):
    """Return the environment of such a process."""
    return clean_environ(**{"PYTHONPATH": str(ENTRY.parent.parent), "TERM": "xterm", **more})


def start(folder, *argv, **options):
    """Start `notyet` in a folder, with a person before it."""
    return subprocess.Popen(
        command_line(*argv),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **{"env": environment(), **options},
    )


def converse(folder, argv, answers, before=lambda: None, **environ):
    """Run `notyet` on a terminal, and answer its questions; return its code and all it showed."""
    master, slave = pty.openpty()
    started = subprocess.Popen(
        command_line(*argv),
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(**environ),
    )
    os.close(slave)
    seen = b""
    for answer in answers:
        already = len(_QUESTION.findall(seen))
        while len(_QUESTION.findall(seen)) == already and select.select([master], [], [], 30)[0]:
            part = _read(master)
            if not part:
                break
            seen += part
        before()
        word = answer(started) if callable(answer) else answer  # or something else than a word
        if word:
            os.write(master, word)
    while part := _read(master):
        seen += part
    os.close(master)
    return started.wait(30), re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())


def _read(master):
    try:
        return os.read(master, 65_536)
    except OSError:  # the terminal's other end is closed
        return b""
