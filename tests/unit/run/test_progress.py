"""Hearing of each gate while it is asked, and of its answer while others are still at work."""

import asyncio
import threading

import pytest

from commands import script
from notyet.core.verdict import Allow, Block, Problem
from notyet.hosts.hook_answers import HookAnswer
from notyet.hosts.notyet.hooks import read_return
from notyet.run.drive import Stage, run_stage
from notyet.run.drive_async import drive
from notyet.run.functions import GateFunction
from notyet.run.gate_command import GateCommand

LONG = 30.0


def command(name, text, folder, **fields):
    """A gate whose command passes with exit 0; it waits no longer than a test does."""
    fields = {"timeout": LONG} | fields
    return GateCommand(name=name, job=script(text, folder, **fields), read=read)


def read(ended):
    return HookAnswer(answer=Allow() if ended.code == 0 else Block(f"exit {ended.code}"))


def until_there(path):
    return f'while ! [ -e "{path}" ]; do sleep 0.01; done'


def function(name, call, timeout=LONG):
    return (GateFunction(name, call, read_return, timeout=timeout), ())


def in_this_thread(stage):
    return run_stage(stage)


def on_a_loop(stage):
    def line():
        return (yield stage)

    return asyncio.run(drive(line()))


def staged(*questions, heard, deadline=None, jobs=None):
    places = dict(enumerate(questions))
    return Stage(
        {place: asked for place, asked in places.items() if isinstance(asked, tuple)},
        {place: asked for place, asked in places.items() if not isinstance(asked, tuple)},
        deadline,
        heard,
        jobs=jobs,
    )


class Heard:
    """What was told, in order; touches a file when a gate has answered."""

    def __init__(self, then=None):
        self.said = []
        self.output = {}
        self.threads = set()
        self.then = then or {}

    def __call__(self, name, report):
        self.threads.add(threading.get_ident())
        self.said.append((name, report))
        if report is not None and name in self.then:
            self.then[name].touch()

    def printed(self, name, chunk):
        """Take what a command printed; touch a file when a gate has printed its name."""
        self.output[name] = self.output.get(name, b"") + chunk
        if name in self.then and self.output[name].strip() == name.encode():
            self.then[name].touch()

    @property
    def names(self):
        return [(name, report.status if report else "asked") for name, report in self.said]


both = pytest.mark.parametrize("ask", [in_this_thread, on_a_loop])


@both
def test_a_command_that_has_ended_is_told_of_while_another_runs(ask, tmp_path):
    heard = Heard({"quick": tmp_path / "go"})
    quick = command("quick", "echo so; exit 3", tmp_path)
    slow = command("slow", until_there(tmp_path / "go"), tmp_path)
    reports = ask(staged(slow, quick, heard=heard))
    assert [report.status for report in reports] == ["allowed", "blocked"]
    assert heard.names == [
        ("slow", "asked"),
        ("quick", "asked"),
        ("quick", "blocked"),
        ("slow", "allowed"),
    ]
    _, told = heard.said[2]
    assert (told.exit, told.output) == ("exit 3", "so")


@both
def test_a_function_that_has_answered_is_told_of_while_a_command_runs(ask, tmp_path):
    heard = Heard({"quick": tmp_path / "go"})
    quick = function("quick", lambda: Block("no"))
    slow = command("slow", until_there(tmp_path / "go"), tmp_path)
    reports = ask(staged(quick, slow, heard=heard))
    assert [report.status for report in reports] == ["blocked", "allowed"]
    assert sorted(heard.names[:3]) == [("quick", "asked"), ("quick", "blocked"), ("slow", "asked")]
    assert heard.names[3:] == [("slow", "allowed")]


@both
def test_a_command_that_has_ended_is_told_of_while_a_function_is_at_work(ask, tmp_path):
    ended = threading.Event()

    def hear(name, report):
        if name == "quick" and report is not None:
            ended.set()

    def wait():
        return None if ended.wait(LONG) else Block("nobody told me")

    stage = staged(function("slow", wait), command("quick", "true", tmp_path), heard=hear)
    assert [report.status for report in ask(stage)] == ["allowed", "allowed"]


@both
def test_output_is_heard_while_the_command_runs(ask, tmp_path):
    heard = Heard({"slow": tmp_path / "go"})
    slow = command("slow", f"echo slow; {until_there(tmp_path / 'go')}; echo end >&2", tmp_path)
    quiet = command("quiet", "true", tmp_path)
    reports = ask(staged(slow, quiet, heard=heard))
    assert [report.status for report in reports] == ["allowed", "allowed"]
    assert heard.output == {"slow": b"slow\nend\n"}


@both
def test_a_command_is_heard_of_when_its_turn_comes(ask, tmp_path):
    heard = Heard()
    ask(staged(*(command(name, "true", tmp_path) for name in "abc"), heard=heard, jobs=1))
    assert heard.names.index(("a", "allowed")) < heard.names.index(("c", "asked"))


@both
def test_it_is_heard_in_the_thread_that_drives(ask, tmp_path):
    heard = Heard()
    ask(staged(function("f", lambda: None), command("c", "true", tmp_path), heard=heard))
    assert heard.threads == {threading.get_ident()}


@both
def test_a_progress_callback_that_raises_is_harmless(ask, tmp_path):
    calls = []

    def hear(name, _report):
        calls.append(name)
        raise RuntimeError("deaf")

    stage = staged(
        function("f", lambda: None),
        command("good", "true", tmp_path),
        command("bad", "exit 1", tmp_path),
        heard=hear,
    )
    assert [report.status for report in ask(stage)] == ["allowed", "allowed", "blocked"]
    assert sorted(calls) == ["bad", "bad", "f", "f", "good", "good"]


@both
def test_a_gate_that_is_too_late_is_told_of_once(ask, tmp_path):
    heard = Heard()
    never = threading.Event()
    stage = staged(
        function("f", never.wait, timeout=0.05),
        command("c", "sleep 60", tmp_path, timeout=0.05),
        heard=heard,
    )
    reports = ask(stage)
    never.set()
    assert [report.answer.kind for report in reports if isinstance(report.answer, Problem)] == [
        "timeout"
    ]
    assert sorted(heard.names) == [
        ("c", "asked"),
        ("c", "blocked"),
        ("f", "asked"),
        ("f", "problem"),
    ]


def test_no_progress_is_reported_after_cancellation(tmp_path):
    heard = Heard()

    def line():
        return (yield staged(command("c", "sleep 60", tmp_path), heard=heard))

    async def cancelled():
        driving = asyncio.ensure_future(drive(line()))
        while not heard.said:
            await asyncio.sleep(0)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving

    asyncio.run(cancelled())
    assert heard.names == [("c", "asked")]


def test_an_interruption_by_a_progress_callback_ends_the_commands(tmp_path):
    def hear(_name, report):
        if report is not None:
            raise KeyboardInterrupt

    stage = staged(
        command("quick", "true", tmp_path),
        command("slow", f"echo $$ > {tmp_path}/slow.pid; sleep 60", tmp_path),
        heard=hear,
    )
    with pytest.raises(KeyboardInterrupt):
        in_this_thread(stage)
