"""`import notyet` and `notyet hook` load only the standard library; dependencies are for people."""

import json
import subprocess
import sys

import pytest

from hook_runs import FAILING, PASSING, clean_environ, in_bytes, new_project, payload

# What the interpreter itself loads (.pth files of an environment) does not count.
CODE = """
import sys
before = set(sys.modules)
{code}
roots = {{name.partition(".")[0] for name in set(sys.modules) - before}}
sys.stderr.write(" ".join(sorted(roots - set(sys.stdlib_module_names))))
"""


def run(code, content=b"", *, tmp_path):
    """Run code with every dependency installed; return its output and what is not standard."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(code=code)],
        input=content,
        capture_output=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
        env=clean_environ(),
    )
    return done.stdout, done.stderr.decode().split()


def test_importing_every_public_name_loads_no_other_library(tmp_path):
    code = "import notyet\nfor name in notyet.__all__: getattr(notyet, name)"
    assert run(code, tmp_path=tmp_path) == (b"", ["notyet"])


def test_a_ledger_in_a_file_loads_nothing_of_postgresql(tmp_path):
    code = "from notyet import Ledger, StopEvent; Ledger('l.db').begin(StopEvent(session_id='s'))"
    shown = "print(*[name for name in sys.modules if 'postgres' in name])"
    assert run(f"{code}\n{shown}", tmp_path=tmp_path) == (b"\n", ["notyet"])


def test_neither_notyet_nor_its_hook_loads_anything_of_a_fleet(tmp_path):
    code = (
        "import notyet.hook.main, notyet.supervise\n"
        "for name in notyet.__all__: getattr(notyet, name)\n"
        "import notyet.fleet"
    )
    shown = (
        "print(*[name for name in sys.modules if name.startswith('notyet.fleet.')"
        " or name in ('dbos', 'sqlalchemy', 'psycopg')])"
    )
    assert run(f"{code}\n{shown}", tmp_path=tmp_path) == (b"\n", ["notyet"])


@pytest.mark.parametrize(("gates", "is_blocked"), [("", False), (PASSING, False), (FAILING, True)])
def test_a_stop_loads_no_other_library(tmp_path, gates, is_blocked):
    project = new_project(tmp_path / "p", gates) if gates else tmp_path
    code = 'from notyet.hook.main import serve; serve(("--host", "claude"))'
    reply, loaded = run(code, in_bytes(payload("claude", project)), tmp_path=tmp_path)
    assert loaded == ["notyet"]
    assert bool(reply) is is_blocked
    if reply:
        json.loads(reply)


def test_a_start_at_which_the_stop_is_not_registered_loads_no_other_library(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    hook = {"type": "command", "command": "notyet hook --host claude"}
    (project / ".claude").mkdir()
    settings = {"hooks": {"SessionStart": [{"hooks": [hook]}]}, "enabledPlugins": {"notyet": True}}
    (project / ".claude" / "settings.json").write_text(json.dumps(settings))
    code = 'from notyet.hook.main import serve; serve(("--host", "claude"))'
    fields = {"hook_event_name": "SessionStart", "source": "startup"}
    content = in_bytes(payload("claude", project, **fields))
    reply, loaded = run(code, content, tmp_path=tmp_path)
    assert "Stop is not registered" in json.loads(reply)["systemMessage"]
    assert loaded == ["notyet"]


def test_the_dependencies_are_installed_where_this_is_tested(tmp_path):
    code = "import psycopg, rich, shtab, tomlkit, yaml"
    _, loaded = run(code, tmp_path=tmp_path)
    assert {"psycopg", "rich", "shtab", "tomlkit", "yaml"} <= set(loaded)
