"""The screen "Setup": what `notyet status` says, looked for once for all tabs."""

import json
import os
import threading
from html import unescape
from urllib.parse import quote

import pytest

from notyet.ledger.connection import default_path
from notyet.web import setup
from status_world import World
from support import decide, stop

LOOK = "/setup?look=1"
SECRET = "hunter2"  # noqa: S105  # of a made-up host


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    made = World("claude", tmp_path, monkeypatch, capsys)
    # Each look asks for the version of the host's program once.
    made.looks = tmp_path / "looks"
    made.looks.write_text("")
    made.program("claude", f"echo one >> {made.looks}; echo '2.1.325 (Claude Code)'")
    return made


@pytest.fixture
def page(world, serve):
    return serve(cwd=str(world.project), path=default_path(os.environ))


def looks(world):
    return len(world.looks.read_text().splitlines())


def test_the_screen_comes_at_once_and_says_where_the_rest_is(page, world):
    text = page.get("/setup").text
    assert "Looking…" in text
    assert f'hx-get="{LOOK}"' in text
    assert f'<a href="{LOOK}">' in text
    assert looks(world) == 0


def test_the_answer_gates_hosts_and_limits(page, world):
    text = page.get(LOOK).text
    assert ">YES</span> stops of Claude Code are checked by 2 gates" in text
    assert "notyet.toml:1" in text
    assert "<code>true</code>" in text
    assert "registered for you (~/.claude/settings.json), 2.1.325" in text
    assert "3 send-backs a turn" in text
    assert "No agent has stopped here yet." in text
    assert "What is wrong" not in text


def test_each_fault_has_the_command_that_fixes_it(page, world):
    (world.project / "notyet.toml").write_text('[gates.new]\nrun = "echo <b>"\n')
    world.settings.write_text("{}")
    text = unescape(page.get(LOOK).text)
    assert ">NO</span>" in text
    assert '<code class="copy">notyet install claude</code>' in text
    assert '<code class="copy">notyet trust</code>' in text
    assert "[config-changed]" in text
    assert "<b>" not in page.get(LOOK).text


def test_the_json_is_that_of_status(page, world, capsys):
    said = page.get("/setup.json").json
    _, shown = world.shown("--json")
    known = json.loads(shown)
    for one in (said["found"]["report"], known):
        for host in one["hosts"]:
            assert host.pop("probe") is None or host["host"] == "claude"
    assert said["found"]["report"] == known


def test_tabs_that_ask_at_once_share_one_look(page, world):
    page.get("/setup")
    tabs = [threading.Thread(target=page.get, args=(LOOK,)) for _ in range(3)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert looks(world) == 1
    assert ">YES</span>" in page.get("/setup").text  # which is still fresh
    assert looks(world) == 1


def test_asking_again_looks_again(page, world):
    text = page.get(LOOK).text
    again = unescape(text.partition('href="/setup?look=1&amp;after=')[2].partition('"')[0])
    assert ">YES</span>" in page.get(f"{LOOK}&after={again}").text
    assert looks(world) == 2
    # Another tab that showed the same first look gets the second one.
    page.get(f"{LOOK}&after={again}")
    assert looks(world) == 2


def test_an_old_look_does_not_count(page, world, monkeypatch):
    page.get(LOOK)
    monkeypatch.setattr(setup, "_FRESH", 0.0)
    assert "Looking…" in page.get("/setup").text
    page.get(LOOK)
    assert looks(world) == 2


def test_another_folder_in_which_an_agent_stopped(page, tmp_path):
    other, gone = tmp_path / "other", tmp_path / "gone"
    other.mkdir()
    for folder in (other, gone):
        decide(page.ledger, stop(cwd=str(folder)))
    shown = page.get(f"{LOOK}&place={quote(str(other))}")
    assert shown.status == 200
    assert f'<option value="{other}" selected>' in shown.text
    assert str(gone) not in shown.text
    for place in (gone, tmp_path, "relative", "/etc"):
        refused = page.get(f"{LOOK}&place={quote(str(place))}")
        assert refused.status == 404
        assert "place is not a folder" in refused.text


def test_the_last_stops_are_those_of_the_ledger_that_is_shown(world, serve):
    page = serve(cwd=str(world.project))
    decide(page.ledger, stop(cwd=str(world.project)))
    assert '<a href="/stops/1">1</a>' in page.get(LOOK).text


@pytest.mark.file_only("another kind of file in its place")
def test_a_ledger_that_cannot_be_read_is_one_of_the_faults(world, serve, tmp_path):
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no ledger at all" * 100)
    page = serve(cwd=str(world.project), path=str(broken))
    shown = page.get(LOOK)
    assert shown.status == 200
    assert ">YES</span> stops of Claude Code are checked by 2 gates" in shown.text
    assert "broken.db cannot be read" in shown.text
    assert page.get(f"{LOOK}&place={quote(str(tmp_path))}").status == 503


def test_a_folder_whose_name_is_not_utf8(page, world, tmp_path, serve):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/sh\xffop")
    os.mkdir(folder)
    shown = serve(cwd=folder).get(LOOK)
    assert shown.status == 200
    decide(page.ledger, stop(cwd=folder))
    link = shown.text.partition('<a href="/stops?place=')[2].partition('"')[0]
    assert 'id="stop-1"' in page.get(f"/stops?place={link}").text


@pytest.mark.parametrize("asked", ["after=soon", "folder=/"])
def test_an_address_that_means_nothing(page, world, asked):
    assert page.get(f"/setup?{asked}").status == 400
    assert looks(world) == 0


def test_no_value_of_a_variable_is_shown(page, world, monkeypatch, serve):
    monkeypatch.setenv("NOTYET_TEST_KEY", SECRET)
    world.each_entry(command=f"API_KEY={SECRET} {world.notyet} hook --host claude")
    page = serve(cwd=str(world.project))
    for path in (LOOK, "/setup.json"):
        text = page.get(path).text
        assert "NOTYET_TEST_KEY" in text
        assert SECRET not in text


def test_looking_writes_nothing(page, world):
    def files():
        return {
            path: path.read_bytes()
            for folder in (world.home, world.project)
            for path in folder.rglob("*")
            if path.is_file()
        }

    before = files()
    assert page.get(LOOK).status == 200
    assert page.get("/setup.json").status == 200
    assert files() == before
