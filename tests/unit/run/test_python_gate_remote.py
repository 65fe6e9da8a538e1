"""`python = "module:function"` in a workspace elsewhere: a function in a Python there (N4)."""

import io
import os
import subprocess
import sys
import zipfile

import pytest

from notyet import Allow, Block, Command, Engine, Gate, __version__
from notyet.engine.observers import EVERY_DECISION, Observer
from notyet.run.python_gate import archive, argv_there
from support import run_sync, stop

pytestmark = pytest.mark.rule("N4", "M1")

GATES = """
import os, sys
from notyet import Allow, Block, StopEvent

def where(event):
    assert isinstance(event, StopEvent)
    print("noise")
    here = [os.getcwd(), event.cwd, sys.executable, sys.path[0], os.environ["NOTYET_PROJECT_DIR"]]
    return Block(chr(10).join(here))

def transcript(event):
    with open(event.transcript_path) as file:
        return Block(file.read())

async def fine(event):
    return Allow(note="fine")

def broken(event):
    raise ValueError("oh")

def gone(event):
    os._exit(3)

def odd(event):
    os._exit(127)

def more(event):
    from notyet import Engine
    return Block(Engine.__module__)

def typo(event):
    import notyet.no_such_module

def see(event, decision):
    with open("seen", "w") as file:
        file.write(decision["outcome"] + sys.executable)
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "it's ö"
    folder.mkdir()
    (folder / "gates.py").write_text(GATES)
    return folder


def function(target, warm_box, project, interpreter=sys.executable):
    options = {"python": target, "interpreter": interpreter}
    check = Command(argv=("python", target), workspace=warm_box.url(str(project)), options=options)
    return Gate(name=target, check=check)


def asked(warm_box, project, *targets, event=None, **fields):
    gates = [function(f"gates:{target}", warm_box, project, **fields) for target in targets]
    return [report.answer for report in run_sync(Engine(gates), event).reports]


def own_interpreter(project, name=".venv/bin/python", before=""):
    """Put an interpreter into the project: this one, under another name."""
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n{before}\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)


def test_what_a_function_does_there_means_the_same(warm_box, project, tmp_path):
    (tmp_path / "t.jsonl").write_text("what was said")
    targets = ("where", "transcript", "fine", "broken", "gone", "odd")
    event = stop(cwd="/", transcript_path=str(tmp_path / "t.jsonl"))
    answers = asked(warm_box, project, *targets, event=event)
    there = str(project)
    assert answers[0] == Block(f"{there}\n{there}\n{sys.executable}\n{there}\n{there}")
    assert answers[1:3] == [Block("what was said"), Allow(note="fine")]
    kinds = [(answer.kind, answer.detail) for answer in answers[3:]]
    assert kinds[:2] == [
        ("crashed", "ValueError: oh (on box)"),
        ("crashed", "its process ended with exit code 3 and no answer (on box)"),
    ]
    assert kinds[2][0] == "cannot_start"


def test_what_else_a_function_imports_of_notyet_is_the_one_that_is_installed_there(
    warm_box, project
):
    (answer,) = asked(warm_box, project, "more")
    assert answer == Block("notyet.engine.engine")
    bare = project / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    for interpreter, module in (("./bare", "more"), (sys.executable, "typo")):
        (answer,) = asked(warm_box, project, module, interpreter=interpreter)
        assert answer.kind == "crashed"
        missing = "notyet.engine" if module == "more" else "notyet.no_such_module"
        assert answer.detail == (
            f"ModuleNotFoundError: No module named '{missing}'; only what a gate needs of "
            f"notyet is sent along, so install notyet {__version__} (on {warm_box.alias})"
        )


def test_the_projects_own_interpreter_there_comes_first(warm_box, project):
    own_interpreter(project, before="export NOTYET_PROJECT_DIR=by-its-own")
    (answer,) = asked(warm_box, project, "where", interpreter="")
    assert answer.prompt.endswith("\nby-its-own")


def test_an_interpreter_may_be_named_from_the_project_or_the_home(warm_box, project):
    own_interpreter(project, "my/python", before="export NOTYET_PROJECT_DIR=mine")
    (answer,) = asked(warm_box, project, "where", interpreter="my/python")
    assert answer.prompt.endswith("\nmine")
    argv = argv_there({"python": "m:f", "interpreter": "~/p"}, "/f", "/z")
    own_interpreter(project, "p", before='echo "$@"; exit 0')
    environ = os.environ | {"HOME": str(project)}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True)
    assert done.stdout == "/z /f m:f\n"


@pytest.mark.parametrize("interpreter", ["no-such-python", "~/no such/python", ".venv/bin/none"])
def test_an_interpreter_that_is_not_there_is_a_problem_that_says_so(warm_box, project, interpreter):
    (answer,) = asked(warm_box, project, "where", interpreter=interpreter)
    assert answer.kind == "cannot_start"
    assert interpreter.removeprefix("~/") in answer.detail


def test_a_python_that_is_too_old_there_is_a_problem_that_says_so(warm_box, project):
    old = "import runpy, sys; sys.version_info = (3, 8, 1); sys.argv = sys.argv[1:]; "
    run = f"{old}runpy.run_path(sys.argv[0], run_name='__main__')"
    path = project / "old"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{run}" "$@"\n')
    path.chmod(0o755)
    (answer,) = asked(warm_box, project, "where", interpreter="./old")
    assert answer.kind == "crashed"
    assert "Python 3.8 is too old there, 3.11 or later is needed" in answer.detail


def test_the_archive_brings_all_that_the_child_needs_and_is_small():
    packed = archive()
    assert archive() is packed
    assert len(packed) < 150_000
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        names = set(file.namelist())
    assert {"__main__.py", "notyet/__init__.py", "notyet/core/verdict.py"} < names
    assert not any("ledger" in name or "cli" in name for name in names)


def test_a_function_there_may_observe_too(warm_box, project):
    check = function("gates:see", warm_box, project).check
    warned = []
    observers = [Observer(EVERY_DECISION, check, name="o")]
    run_sync(Engine([lambda event: None], observers=observers, warn=warned.append))
    assert warned == []
    assert (project / "seen").read_text() == f"passed{sys.executable}"
