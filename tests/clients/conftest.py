"""The real programs as fixtures. Every scenario ends with the same check of what was left."""

from __future__ import annotations

import os
from importlib import import_module

import pytest

from clients.fetching import Wrong
from clients.programs import (
    CLAUDE,
    CLAUDE_OLD,
    CODEX,
    COPILOT,
    DROID,
    GEMINI,
    GOOSE,
    HERMES,
    KIMI,
    OPENCODE,
    OPENHANDS,
    OPENHANDS_CLI,
    PI,
    QWEN,
    VIBE,
    Program,
    check_given,
    node_of,
    path_of,
)

# They assert, and are imported later.
pytest.register_assert_rewrite("clients.world", "clients.killed_hook")
CLIENTS = {
    "claude-2.1.325": (CLAUDE, "clients.claude_code.driver", "ClaudeCode"),
    "claude-2.1.197": (CLAUDE_OLD, "clients.claude_code.driver", "ClaudeCode"),
    "codex-0.166.0": (CODEX, "clients.codex.driver", "Codex"),
}
# The hosts that the contract is for (test_every_host.py): a line each.
HOSTS: dict[str, tuple[Program, str, str]] = {
    "copilot": (COPILOT, "clients.copilot.driver", "CopilotCli"),
    "droid": (DROID, "clients.droid.driver", "Droid"),
    "gemini": (GEMINI, "clients.gemini.driver", "GeminiCli"),
    "kimi": (KIMI, "clients.kimi.driver", "KimiCode"),
    "goose": (GOOSE, "clients.goose.driver", "Goose"),
    "vibe": (VIBE, "clients.vibe.driver", "Vibe"),
    "openhands": (OPENHANDS, "clients.openhands.driver", "OpenHands"),
    "qwen": (QWEN, "clients.qwen.driver", "Qwen"),
    "opencode": (OPENCODE, "clients.opencode.driver", "OpenCode"),
    "pi": (PI, "clients.pi.driver", "Pi"),
}
# Hosts that cannot keep it, as they run hooks after edits only: they have tests of their own.
AFTER_EDITS = {"hermes": (HERMES, "clients.hermes.driver", "Hermes")}
# Programs of hosts that are proven by another one: they have tests of their own, too.
OTHERS = {"openhands-cli": (OPENHANDS_CLI, "clients.openhands.driver", "OpenHandsCli")}
# Where versions cannot differ, only the newest one is tried.
NEWEST = [name for name in CLIENTS if name != "claude-2.1.197"]
newest = pytest.mark.parametrize("client", NEWEST, indirect=True)
newest_claude = pytest.mark.parametrize("claude", ["claude-2.1.325"], indirect=True)
_OF_CLIENTS = (
    "client",
    "claude",
    "codex",
    "host",
    "agent",
    "page",
)  # fixtures, whose parameter names a host


def only(*names):
    """Run a test, which has the fixture `host`, with these hosts only."""
    return pytest.mark.parametrize("host", names, indirect=True)


def known_hosts():
    """Return the names of all hosts that have tests here."""
    return list(dict.fromkeys(name.partition("-")[0] for name in [*CLIENTS, *HOSTS, *AFTER_EDITS]))


def chosen_hosts():
    """Return the hosts that HOSTS names; all where it names none. Raises UsageError."""
    names = [name.strip() for name in os.environ.get("HOSTS", "").split(",") if name.strip()]
    unknown = [name for name in names if name not in known_hosts()]
    if unknown:
        known = ", ".join(known_hosts())
        raise pytest.UsageError(f"HOSTS: no tests for {', '.join(unknown)}; there are: {known}")
    return names or known_hosts()


def host_of(item):
    """Return which host a test is about; empty if it is about none."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    found = [parameters[name] for name in _OF_CLIENTS if name in parameters]
    if found:
        return str(found[0]).partition("-")[0]
    folder = item.path.parent.name.partition("_")[0]
    return folder if folder in known_hosts() else ""


def pytest_configure(config):
    """Say it once, and not in every test, that a variable names something wrong."""
    config.addinivalue_line("markers", "full: only with FULL=1")
    chosen_hosts()
    try:
        check_given()
    except Wrong as why:
        raise pytest.UsageError(str(why)) from None


def pytest_collection_modifyitems(config, items):
    """Leave out what HOSTS and FULL do not choose; note of which host each report is."""
    chosen, is_full = chosen_hosts(), os.environ.get("FULL") == "1"
    own = os.path.dirname(__file__)
    kept, others = [], []
    for item in items:
        is_ours = str(item.path).startswith(own)
        host = host_of(item) if is_ours else ""
        item.user_properties += [("host", host)] if host else []
        is_wanted = host in chosen if host else not os.environ.get("HOSTS")
        is_left_out = is_ours and (not is_wanted or (_is_full(item) and not is_full))
        (others if is_left_out else kept).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = kept


def _is_full(item):
    return item.get_closest_marker("full") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    """End the whole report with the hosts that were proven."""
    done = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not hasattr(session.config, "workerinput"):  # not in the workers of xdist
        say_proven(reporter)
    return done


def say_proven(terminalreporter):
    """Say which hosts were proven: a test of theirs ran, and none failed."""
    everything = [one for some in terminalreporter.stats.values() for one in some]
    reports = [one for one in everything if isinstance(one, pytest.TestReport)]
    found = [(dict(one.user_properties).get("host"), one) for one in reports]
    seen = [name for name in chosen_hosts() if any(name == host for host, _ in found)]
    missing = {name: _why_not([one for host, one in found if host == name]) for name in seen}
    proven = [name for name in seen if not missing[name]]
    if not seen:
        return
    terminalreporter.write_line(f"proven {len(proven)} of {len(seen)} hosts: {', '.join(proven)}")
    for name in seen:
        if missing[name]:
            terminalreporter.write_line(f"  not proven: {name}: {missing[name]}")


def _why_not(reports):
    """Return why a host is not proven by the reports of its tests; empty if it is."""
    failed = [one.nodeid.rpartition("::")[2] for one in reports if one.failed]
    if failed:
        return f"{failed[0]} failed"
    if any(one.passed and one.when == "call" for one in reports):
        return ""
    skipped = [str(one.longrepr[2]) for one in reports if one.skipped]
    return skipped[0].removeprefix("Skipped: ") if skipped else "no test of it ran"


def program_or_skip(program):
    """Return where a program is; skip the test, saying why, where it cannot be had."""
    path = path_of(program)
    if isinstance(path, str):
        pytest.skip(path)
    return path


def world_of(name, folder, mixed_in=None):
    """Return a scratch world of one of the programs."""
    program, module, kind = (CLIENTS | HOSTS | AFTER_EDITS | OTHERS)[name]
    path = program_or_skip(program)
    world = getattr(import_module(module), kind)
    if mixed_in:
        world = type(mixed_in.__name__ + kind, (mixed_in, world), {})
    return world(path, program.version, folder, node_of(program))


@pytest.fixture(params=CLIENTS)
def client(request, tmp_path):
    """Each of the programs."""
    with world_of(request.param, tmp_path).scenario() as world:
        yield world


@pytest.fixture(params=[name for name in CLIENTS if name.startswith("claude")])
def claude(request, tmp_path):
    """Claude Code in each of its versions."""
    with world_of(request.param, tmp_path).scenario() as world:
        yield world


@pytest.fixture(params=[name for name in CLIENTS if name.startswith("codex")])
def codex(request, tmp_path):
    """Codex."""
    with world_of(request.param, tmp_path).scenario() as world:
        yield world


@pytest.fixture(params=HOSTS)
def host(request, tmp_path):
    """Each of the hosts that the contract is for."""
    with world_of(request.param, tmp_path).scenario() as world:
        yield world
