"""Forms that do something: who may send them, what is read of them, and what people hear of it."""

import re

import pytest

from notyet.web import app, forms
from notyet.web.site import Drawing, NotFoundError, Notice, Notices, Screen

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
def done():
    """What was asked for by forms."""
    return []


@pytest.fixture
def form_page(serve, monkeypatch, done):
    """A page with a screen that has a form."""

    def act(_site, query, fields):
        if query["id"] == "gone":
            raise NotFoundError("There is no such thing.")
        done.append((query["id"], fields))
        return Notice(f"done: {fields.get('text', '')}", warnings=(EVIL,))

    def draw(_data, query):
        return Drawing("Thing", query.form_token and forms.form(query, "say", key="k1"))

    screen = Screen("/things/{id}", lambda *_: None, draw, act=act)
    monkeypatch.setattr(app, "SCREENS", (*app.SCREENS, screen))
    return serve


def test_a_form_is_carried_out_and_leads_back_with_what_came_of_it(form_page, done):
    page = form_page()
    drawn = page.get("/things/a%20b").text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', drawn))
    assert fields == {"token": page.site.form_token, "action": "say", "key": "k1"}
    assert 'method="post" action="/things/a%20b"' in drawn

    answer = page.post("/things/a%20b", {**fields, "text": f"x {EVIL}"})

    assert answer.status == 303
    assert done == [("a b", {"action": "say", "key": "k1", "text": f"x {EVIL}"})]
    where = answer.headers["Location"]
    assert re.fullmatch(r"/things/a%20b\?done=[\w-]{12}", where)
    shown = page.get(where)
    assert shown.status == 200
    assert 'role="status"' in shown.text
    assert "done: x &lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\u202e" in shown.text
    assert "<script>alert" not in shown.text
    again = page.get(where).text  # it is shown once
    assert "done: x" not in again


def test_no_other_page_can_make_up_a_notice(form_page):
    shown = form_page().get("/things/a?done=Everything%20was%20deleted")
    assert shown.status == 200
    assert "Everything" not in shown.text
    assert 'role="status" tabindex' not in shown.text


@pytest.mark.parametrize("token", ["", "x", None, "cookie", "token"])
def test_a_form_without_the_token_of_forms_does_nothing(form_page, done, token):
    page = form_page()
    values = {"cookie": page.site.cookie, "token": page.site.token}
    answer = page.post("/things/a", {"token": values.get(token, token) or "", "text": "x"})
    assert answer.status == 403
    assert "Nothing was done" in answer.text
    assert "of a page that has ended" in answer.text
    assert done == []


def test_a_page_that_only_shows_has_no_forms_and_takes_none(form_page, done):
    page = form_page(read_only=True)
    assert "<form" not in page.get("/things/a").text
    answer = page.post("/things/a", {"text": "x"})
    assert answer.status == 403
    assert "it was started with --read-only" in answer.text
    assert done == []


def test_what_is_no_form_is_refused_in_a_sentence(form_page, done):
    page = form_page()
    headers = {"Origin": page.origin, "Content-Type": "application/x-www-form-urlencoded"}
    token = f"token={page.site.form_token}".encode()
    for body, kind in (
        (b"{}", "application/json"),
        (token + b"&text=\xff", ""),
        (token + b"&a=1" * 30, ""),
    ):
        sent = headers | ({"Content-Type": kind} if kind else {})
        answer = page.ask("POST", "/things/a", body, **sent)
        assert (answer.status, done) == (400, [])
        assert "That is not a form of this page." in answer.text
    long = page.ask("POST", "/things/a", token + b"&text=" + b"x" * 700_000, **headers)
    assert (long.status, done) == (400, [])
    assert "at most 50,000 characters" in long.text


def test_a_screen_may_refuse_and_others_take_no_forms(form_page, done):
    page = form_page()
    answer = page.post("/things/gone", {"text": "x"})
    assert (answer.status, done) == (404, [])
    assert "There is no such thing." in answer.text
    assert page.post("/stops", {}).status == 405


def test_notices_that_are_never_read_do_not_pile_up():
    notices = Notices()
    names = [notices.keep(Notice(str(number))) for number in range(150)]
    assert notices.take(names[0]) is None
    assert notices.take(names[149]).text == "149"
    assert notices.take(names[149]) is None
    assert notices.take("") is None
