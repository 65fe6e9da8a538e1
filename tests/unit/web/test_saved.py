"""`notyet page --save`: one file with everything in it, and what keeps it from being written."""

import base64
import hashlib
import os
import re
import stat
import sys
from html import unescape
from html.parser import HTMLParser

import pytest

from notyet import Allow, Block, Engine, Ledger, Report
from notyet.cli.main import main
from notyet.web import saved
from notyet.web.site import Site
from support import decide, gate, stop

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e"


class Reader(HTMLParser):
    """Collects the elements and the text of a file."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path / "ledger.db"))
    opened = Ledger(tmp_path / "ledger.db")
    yield opened
    opened.close()


@pytest.fixture
def sent_back(ledger):
    """A stop that was sent back, and one that passed, with hostile texts everywhere."""
    engine = Engine([gate(HOSTILE, Block(HOSTILE))], ledger=ledger, warn=lambda _: None)
    engine.check_sync(stop(cwd="/p", host=HOSTILE, session_id=HOSTILE, last_message=HOSTILE))
    engine = Engine([gate("tests", Allow())], ledger=ledger, warn=lambda _: None)
    engine.check_sync(stop(cwd="/p/q", session_id="s2", last_message="All tests pass."))


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(tmp_path, *argv):
    path = tmp_path / "out.html"
    assert main(["page", "--save", str(path), *argv]) == 0
    return path.read_text(encoding="utf-8")


def test_the_file_says_what_was_checked_said_and_read(sent_back, tmp_path, capsys):
    html = write(tmp_path)
    page = Reader(html)
    stops = {attrs["id"]: attrs for attrs in page.all("details") if "id" in attrs}
    assert [*stops] == ["stop-2", "stop-1"]
    assert stops["stop-1"]["data-outcome"] == "sent back"
    assert stops["stop-2"]["data-gates"] == "tests"
    assert "All tests pass." in page.text
    assert "The agent read" in page.text
    assert "sent back 1/3" in page.text
    assert "of all 2 stops in the last 30 days" in page.text
    assert capsys.readouterr().out.startswith(f"{tmp_path}/out.html: 2 stops, ")


def test_nothing_in_it_runs_or_loads_but_its_own(sent_back, tmp_path):
    html = write(tmp_path)
    page = Reader(html)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    policy = page.all("meta")[1]["content"]
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert len(page.all("script")) == 1
    assert page.all("img") == []
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert not [attrs for _, attrs in page.elements if "style" in attrs or "src" in attrs]
    links = [attrs["href"] for _, attrs in page.elements if "href" in attrs]
    assert all(href.startswith(("#", "data:image/svg+xml,")) for href in links)
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_only_its_user_may_read_it(sent_back, tmp_path):
    out = tmp_path / "out.html"
    out.write_text("an older one")
    out.chmod(0o644)
    write(tmp_path)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("out.html*")] == ["out.html"]


def test_only_some_stops(sent_back, tmp_path):
    assert "stop-1" not in write(tmp_path, "--place", "/p/q")
    assert "stop-2" in write(tmp_path, "--place", "/p/q", "--since", "1h")
    html = write(tmp_path, "--since", "2001-01-01")
    assert "since 2001-01-01" in html


def test_more_stops_than_a_file_holds_are_said(ledger, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(saved, "MOST_SAVED", 2)
    for number in range(3):
        decide(ledger, stop(session_id=f"s{number}"))
    html = write(tmp_path)
    shown = [attrs["id"] for attrs in Reader(html).all("details") if "id" in attrs]
    assert shown == ["stop-3", "stop-2"]
    assert "the newest 2 stops; there are more" in html
    assert "the newest 2 stops," in capsys.readouterr().out


def test_a_long_text_is_cut(ledger, tmp_path):
    engine = Engine([gate("tests", Block("x" * 50_000))], ledger=ledger, warn=lambda _: None)
    engine.check_sync(stop(last_message="y" * 200_000))
    html = write(tmp_path)
    assert "characters left out" in html
    assert len(html) < 60_000


def test_an_empty_ledger_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path / "none" / "ledger.db"))
    html = write(tmp_path)
    assert "No agent stopped in the last 30 days." in html
    assert not (tmp_path / "none").exists()


def test_it_goes_to_stdout(sent_back, capsysbinary):
    assert main(["page", "--save", "-"]) == 0
    out = capsysbinary.readouterr().out
    assert out.startswith(b"<!doctype html>")
    assert out.endswith(b"</html>")


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["--save", "folder"], 1, "cannot write folder: it is a folder"),
        (["--save", "file/out.html"], 1, "cannot write file/out.html: "),
        (["--save", "/dev/full"], 1, "cannot write /dev/full: No space left"),
        (["--save", ""], 2, "--save needs the name of a file"),
        (["--save", "out.html", "--since", "soon"], 2, "since: invalid time 'soon'"),
        (["--since", "2d"], 2, "--since and --place are for --save"),
        (["--place", "."], 2, "--since and --place are for --save"),
    ],
)
@pytest.mark.usefixtures("sent_back", "in_folder")
def test_what_cannot_be_written_is_said_in_one_sentence(tmp_path, capsys, argv, code, says):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    assert main(["page", *argv]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"notyet page: {says}")
    assert shown.err.count("\n") == 1
    assert not (tmp_path / "out.html").exists()


def test_a_device_stays_what_it_is(sent_back):
    assert main(["page", "--save", os.devnull]) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.file_only("another kind of file in its place")
def test_a_ledger_that_cannot_be_read(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken.db").write_bytes(b"no ledger at all" * 100)
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path / "broken.db"))
    assert main(["page", "--save", str(tmp_path / "out.html")]) == 1
    assert "broken.db" in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


def test_it_needs_htpy_and_says_so(tmp_path, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("notyet.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "htpy", None)
    assert main(["page", "--save", str(tmp_path / "out.html")]) == 2
    assert "needs htpy, which is not installed; in a checkout, run: pip" in capsys.readouterr().err


def test_it_loads_nothing_of_a_server(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("notyet.web")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "No agent stopped" in write(tmp_path)


def test_the_numbers_are_those_of_the_stops(ledger):
    for number in range(3):
        decide(ledger, stop(session_id=f"s{number}"))
    html = unescape(saved.save(Site(ledger.path)).html)
    assert "<strong>3</strong> stops" in html


def test_an_output_that_a_hook_hides_is_left_out():
    report = Report(gate="g", answer=Block("words"), output="printed", hidden=True)
    drawn = str(saved._gate(report))
    assert "It wants its output hidden" in drawn
    assert "printed" not in drawn
