"""Ask a preset about a folder, and put programs on the PATH."""

import os
import shutil

from notyet.core.event import StopEvent
from notyet.gates import presets
from notyet.gates.question import Question


def ask(name, cwd, *, folder="", seconds=60.0):
    """Return what a preset answers about the repository of a folder."""
    event = StopEvent(cwd=str(cwd))
    question = Question(
        event=event, gate="x", options={"uses": name}, folder=str(folder), seconds=seconds
    )
    return presets.check(question)


def passes(answer):
    """Return True if the agent may finish."""
    return not answer.reason and not answer.problem


def program(folder, name, text):
    """Write an executable script."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def only_on_path(monkeypatch, folder, *programs):
    """Leave a PATH with this folder alone, which gets links to programs that must stay."""
    folder.mkdir(exist_ok=True)
    for name in programs:
        os.symlink(shutil.which(name), folder / name)
    monkeypatch.setenv("PATH", str(folder))
