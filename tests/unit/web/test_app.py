"""Every screen is served alike: as HTML, as JSON, and when it goes wrong."""

from importlib import import_module

import pytest

from support import decide, stop


def test_a_screen_as_html_and_as_json(page):
    decide(page.ledger, stop(session_id="<b>s1"))

    shown, data = page.get("/"), page.get("/now.json")

    assert shown.status == 200
    assert "&lt;b&gt;s1" in shown.text
    assert "<b>s1" not in shown.text
    assert data.status == 200
    assert "<b>s1" in data.text
    assert data.json


def test_an_address_without_a_screen(page):
    answer = page.get("/nowhere?token=")

    assert answer.status == 403
    answer = page.get("/nowhere")
    assert answer.status == 404
    assert "There is no such page" in answer.text


@pytest.mark.file_only("another kind of file in its place")
def test_a_ledger_that_cannot_be_read(serve, tmp_path):
    (tmp_path / "folder").mkdir()
    answer = serve(path=str(tmp_path / "other.db")).get("/")
    assert answer.status == 200

    (tmp_path / "broken.db").write_bytes(b"no ledger at all" * 100)
    page = serve(path=str(tmp_path / "broken.db"))
    shown, data = page.get("/"), page.get("/now.json")
    assert (shown.status, data.status) == (503, 503)
    assert "The ledger cannot be used" in shown.text
    assert data.json["error"] == "The ledger cannot be used"


def test_a_fault_of_a_screen_is_told_by_an_open_page_too(page, monkeypatch, capsys):
    def fail(*_):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(import_module("notyet.web.stop"), "neighbours", fail)
    decide(page.ledger, stop())
    asked, open_page = page.get("/stops/1"), page.get("/stops/1", HX_Request="true")
    assert (asked.status, open_page.status) == (500, 200)
    assert "<p>This screen has a fault: The terminal" in open_page.text
    assert "<p>This screen has a fault" not in asked.text
    assert "notyet page: /stops/1: ZeroDivisionError: by zero\n" in capsys.readouterr().err
