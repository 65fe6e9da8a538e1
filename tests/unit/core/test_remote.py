"""Workspaces on other machines: how they are written, and what cannot be meant."""

import pytest

from notyet.core.remote import Remote, is_remote, remote_from

pytestmark = pytest.mark.rule("M1")

WRITTEN = {
    "ssh://box/srv/app": Remote(host="box", path="/srv/app"),
    "ssh://dev@box/srv/app": Remote(host="box", path="/srv/app", user="dev"),
    "ssh://dev@box:2222/": Remote(host="box", path="/", user="dev", port=2222),
    "ssh://box.example:22/srv//app/": Remote(host="box.example", path="/srv/app", port=22),
    "ssh://[::1]/srv": Remote(host="::1", path="/srv"),
    "ssh://dev@[fe80::1%25eth0]:22/x": Remote(
        host="fe80::1%25eth0", path="/x", user="dev", port=22
    ),
    "ssh://box/a/../b/./c": Remote(host="box", path="/b/c"),
    "ssh://box/with%20space": Remote(host="box", path="/with space"),
    "ssh://box/with space": Remote(host="box", path="/with space"),
    "ssh://box/100%": Remote(host="box", path="/100%"),
    "ssh://box/100%zz": Remote(host="box", path="/100%zz"),
    "ssh://box/a%  b": Remote(host="box", path="/a%  b"),
    "ssh://box/%2541": Remote(host="box", path="/%41"),
    "ssh://box/é/%C3%A9": Remote(host="box", path="/é/é"),
    "ssh://box/%FF": Remote(host="box", path="/\udcff"),
    "ssh://box/%7Eyou/x": Remote(host="box", path="/~you/x"),
    "ssh://box/x/~you": Remote(host="box", path="/x/~you"),
    "ssh://box/a\nb\x1b%0D\u2028\u202e": Remote(host="box", path="/a\nb\x1b\r\u2028\u202e"),
    "ssh://a@b_c-1.d/x": Remote(host="b_c-1.d", path="/x", user="a"),
}

WRONG = {
    "box:/srv": "begins with ssh://",
    "": "begins with ssh://",
    "ssh://": "names a host",
    "ssh:///srv": "names a host",
    "ssh://dev@/srv": "names a host",
    "ssh://-oProxyCommand=x/srv": "names a host",
    "ssh://b$(id)/srv": "names a host",
    "ssh://b ox/srv": "names a host",
    "ssh://b\nox/srv": "names a host",
    "ssh://[::1/srv": "names a host",
    "ssh://[::1]22/srv": "names a host",
    "ssh://[]/srv": "names a host",
    "ssh://box": "names a folder",
    "ssh://dev@box:22": "names a folder",
    "ssh://dev:secret@box/srv": "a password",
    "ssh://@box/srv": "is a name",
    "ssh://-l@box/srv": "is a name",
    "ssh://a'b@box/srv": "is a name",
    "ssh://box:/srv": "is a number",
    "ssh://box:0/srv": "is a number",
    "ssh://box:65536/srv": "is a number",
    "ssh://box:2x/srv": "is a number",
    "ssh://box:²/srv": "is a number",
    "ssh://[::1]:x/srv": "is a number",
    "ssh://box/~": "begins at the root",
    "ssh://box/~/app": "begins at the root: write /home/you, not ~$",
    "ssh://box/~dev/app": "begins at the root: write /home/dev, not ~dev$",
    "ssh://box/a%00b": "NUL",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_workspace_is_read(text):
    assert is_remote(text)
    assert remote_from(text) == WRITTEN[text]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_workspace_has_one_form_that_reads_as_the_same(text):
    read = remote_from(text)
    assert remote_from(read.url) == read
    assert remote_from(read.url).url == read.url


FORMS = {
    "/srv/app": "/srv/app",
    "/a b\tc\n": "/a%20b%09c%0A",
    "/100%/%41": "/100%25/%2541",
    "/\udcff/é日": "/%FF/é日",
    "/\x7f\x85\xa0\u2028\u202e": "/%7F%C2%85%C2%A0%E2%80%A8%E2%80%AE",
    "/~dev/~x": "/%7Edev/~x",
}


@pytest.mark.rule("N5")
@pytest.mark.parametrize("path", FORMS)
def test_an_address_can_be_printed_pasted_and_stored(path):
    there = Remote(host="box", path=path)
    assert there.url == f"ssh://box{FORMS[path]}"
    assert there.url.isprintable()
    assert remote_from(there.url) == there


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_meant_is_refused_with_words_that_help(text):
    with pytest.raises(ValueError, match=WRONG[text]):
        remote_from(text)


def test_a_path_here_is_no_workspace_elsewhere():
    assert not is_remote("/srv/app")
    assert not is_remote("local")


def test_a_machine_is_what_is_connected_to():
    assert remote_from("ssh://dev@box:22/srv").machine == "ssh://dev@box:22"
    assert remote_from("ssh://[::1]/srv").machine == "ssh://[::1]"
    assert remote_from("ssh://dev@box/srv").destination == "dev@box"
    assert remote_from("ssh://box/srv").destination == "box"


def test_another_folder_on_the_same_machine():
    read = remote_from("ssh://dev@box:22/srv")
    assert read.at("/etc") == remote_from("ssh://dev@box:22/etc")
