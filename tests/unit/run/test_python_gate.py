"""`python = "module:function"` in a file: a function in the project's own interpreter (N4)."""

import io
import json
import os
import sys

import pytest

from hook_runs import ask, new_project, payload, query, stops
from notyet.run import python_child
from notyet.run.python_gate import argv_for

pytestmark = pytest.mark.rule("N4")


def project_with(tmp_path, code, target="checks:gate", more=""):
    folder = tmp_path / "p"
    folder.mkdir(exist_ok=True)
    (folder / "checks.py").write_text(code)
    text = f'[gates.g]\npython = "{target}"\nwhen = "always"\n{more}'
    return new_project(folder, text)


def said():
    """Return what the ledger knows of the one gate."""
    ((status, words),) = query("SELECT status, said FROM reports")
    return status, words


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("return None", "passed"),
        ("return Allow()", "passed"),
        ("return Block('do more')", "blocked"),
        ("return Halt('enough')", "halted"),
        ("return {'decision': 'block'}", "broken"),
        ("return 'no'", "broken"),
        ("raise ValueError('oh')", "broken"),
        ("import sys; sys.exit(0)", "broken"),
        ("import sys; sys.exit(3)", "broken"),
        ("raise KeyboardInterrupt", "broken"),
        ("import os; os._exit(0)", "broken"),
        ("import os; os._exit(1)", "broken"),
        ("import os; os.kill(os.getpid(), 9)", "broken"),
        ('print(\'{"decision": "block", "reason": "x"}\')', "passed"),
        ("import os; os.system('echo noise'); return Block('x')", "blocked"),
        ("import os; os.write(1, b'noise'); return Block('x')", "blocked"),
        ("return Block('\\ud800 x' * 100_000)", "blocked"),
        ("return Block('\\u20ac' * 100_000)", "blocked"),
        ("return Block('\\U0001f600' * 100_000)", "blocked"),
        ("import os; os.write(3, b'half an ans'); os._exit(0)", "broken"),
        ("return Block('')", "broken"),
    ],
)
def test_what_a_function_may_do(tmp_path, body, outcome):
    code = f"from notyet import Allow, Block, Halt\ndef gate(event):\n    {body}\n"
    ask(payload("claude", project_with(tmp_path, code)))
    assert [recorded for recorded, _ in stops()] == ["blocked" if outcome == "broken" else outcome]
    assert (said()[0] == "problem") == (outcome == "broken")


def test_an_async_function_is_awaited(tmp_path):
    code = "import asyncio\nfrom notyet import Block\nasync def gate(event):\n"
    code += "    await asyncio.sleep(0.01)\n    return Block('waited')\n"
    reply = ask(payload("claude", project_with(tmp_path, code)))
    assert "waited" in json.loads(reply.stdout)["reason"]


def test_a_function_sees_the_event(tmp_path):
    code = "from notyet import Block\ndef gate(event):\n"
    code += (
        "    return Block(f'{event.session_id} {event.host} {event.last_message} {event.cwd}')\n"
    )
    project = project_with(tmp_path, code)
    reply = ask(payload("codex", project, last_assistant_message="é"))
    assert f"s1 codex é {project}" in json.loads(reply.stdout)["reason"]


@pytest.mark.parametrize(
    ("code", "target", "words"),
    [
        ("", "missing:gate", "No module named 'missing'"),
        ("", "checks:missing", "has no attribute 'missing'"),
        ("def gate(:\n", "checks:gate", "SyntaxError"),
        ("import no_such_module\n", "checks:gate", "no_such_module"),
        ("gate = 5\n", "checks:gate", "not callable"),
        ("def gate():\n    pass\n", "checks:gate", "argument"),
    ],
)
def test_a_function_that_cannot_be_called_is_a_problem_and_blocks(tmp_path, code, target, words):
    reply = ask(payload("claude", project_with(tmp_path, code, target)))
    assert [recorded for recorded, _ in stops()] == ["blocked"]
    assert words in said()[1]
    assert words in json.loads(reply.stdout)["reason"]


def test_a_function_of_a_class_in_a_package_is_found(tmp_path):
    (tmp_path / "p" / "pkg").mkdir(parents=True)
    code = "from notyet import Block\nimport pkg.other\nclass Gates:\n"
    code += "    @staticmethod\n    def tests(event):\n        return Block(pkg.other.WORDS)\n"
    (tmp_path / "p" / "pkg" / "__init__.py").write_text(code)
    (tmp_path / "p" / "pkg" / "other.py").write_text("WORDS = 'found it'\n")
    reply = ask(payload("claude", project_with(tmp_path, "", "pkg:Gates.tests")))
    assert "found it" in json.loads(reply.stdout)["reason"]


def python_named(path):
    """Make an interpreter that leaves a trace and knows no installed packages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$0" > used\nexec {sys._base_executable} -S "$@"\n')
    path.chmod(0o755)
    return path


def test_the_projects_own_interpreter_is_used_and_needs_no_notyet(tmp_path):
    python = python_named(tmp_path / "p" / ".venv" / "bin" / "python")
    code = "from notyet import Block, StopEvent\nimport sys\ndef gate(event):\n"
    code += "    assert isinstance(event, StopEvent)\n    return Block('mine')\n"
    project = project_with(tmp_path, code)
    reply = ask(payload("claude", project))
    assert "mine" in json.loads(reply.stdout)["reason"]
    assert (project / "used").read_text() == f"{python}\n"


def test_another_interpreter_can_be_chosen(tmp_path):
    python_named(tmp_path / "p" / ".venv" / "bin" / "python")
    chosen = python_named(tmp_path / "p" / "tools" / "my python")
    code = "from notyet import Block\ndef gate(event):\n    return Block('chosen')\n"
    project = project_with(tmp_path, code, more='interpreter = "tools/my python"\n')
    assert "chosen" in json.loads(ask(payload("claude", project)).stdout)["reason"]
    assert (project / "used").read_text() == f"{chosen}\n"


def test_an_interpreter_that_is_missing_is_a_problem(tmp_path):
    code = "def gate(event):\n    pass\n"
    project = project_with(tmp_path, code, more='interpreter = "/no/python"\n')
    ask(payload("claude", project))
    assert [recorded for recorded, _ in stops()] == ["blocked"]


def test_a_project_that_brings_its_own_notyet_is_given_this_one(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "notyet.py").write_text("raise SystemExit('not this one')\n")
    code = "from notyet import Block\ndef gate(event):\n    return Block('ours')\n"
    reply = ask(payload("claude", project_with(tmp_path, code)))
    assert "ours" in json.loads(reply.stdout)["reason"]


def test_names_of_interpreters(tmp_path, monkeypatch):
    def interpreter(chosen):
        return argv_for({"python": "m:f", "interpreter": chosen}, str(tmp_path))[0]

    monkeypatch.setenv("HOME", "/h")
    assert interpreter("") == sys.executable
    assert interpreter("python3.11") == "python3.11"
    assert interpreter("venv/bin/python") == f"{tmp_path}/venv/bin/python"
    assert interpreter("~/bin/python") == "/h/bin/python"


def call(monkeypatch, tmp_path, code, told, target="inside:gate"):
    """Run the child's code in this process; return its answer."""
    (tmp_path / "inside.py").write_text(code)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setitem(sys.modules, "notyet", sys.modules["notyet"])
    monkeypatch.delitem(sys.modules, "inside", raising=False)
    monkeypatch.setattr(sys, "argv", ["child", str(tmp_path), target])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(told).encode())))
    reads, writes = os.pipe()
    saved = os.dup(1)
    os.dup2(writes, 1)
    os.close(writes)
    try:
        python_child.main()
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        sys.modules.pop("inside", None)
    with open(reads, "rb") as answer:
        return json.loads(os.read(answer.fileno(), 65_536))


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("def gate(event): print('noise')", {"decision": "allow"}),
        ("async def gate(event): return None", {"decision": "allow"}),
        ("def gate(event): raise OSError('oh')", {"problem": "OSError: oh"}),
    ],
)
def test_the_child_answers_with_one_object(monkeypatch, tmp_path, code, answer):
    assert call(monkeypatch, tmp_path, code, {"session_id": "s"}) == answer


def test_the_project_is_on_the_path_also_when_the_agent_works_below_it(tmp_path):
    project = project_with(tmp_path, "def gate(event):\n    return None\n")
    (project / "sub").mkdir()
    ask(payload("claude", project / "sub"))
    assert stops() == [("passed", "")]
