"""What a gate there is given arrives unchanged: values, paths, payloads."""

import os

import pytest

from remote_runs import Upload, new_token, nothing_is_left, run, run_together, there, upload_path

pytestmark = pytest.mark.rule("M4")


@pytest.fixture
def box(warm_box):
    return warm_box


NAMES = {
    "spaces": "a  b ",
    "quotes": 'it\'s "here"',
    "newline": "one\ntwo\n",
    "command": "$(touch pwned)`touch pwned`",
    "variable": "$HOME ${PATH}",
    "dash": "-rf",
    "option": "--help",
    "glob": "* ? [a]",
    "tilde": "~",
    "backslash": "a\\b\\",
    "percent": "100%25 %s %n",
    "non-ASCII": "grün 日本語 \U0001f600",
    "not UTF-8": b"caf\xe9 \xff".decode("utf-8", "surrogateescape"),
    "control": "a\x01\x1b[31m\r\x7f",
    "bang": "!! !$ ^a^b",
    "mark": "TOKEN; exit 1 #",
}


def test_a_folder_of_any_name_is_entered(box, tmp_path):
    folders = [tmp_path / name / "in" for name in NAMES.values()]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "here").write_text("it is")
    text = "cat here; printf '|%s' \"$PWD\""
    ended = run_together([there(box, text, dir=str(folder)) for folder in folders])
    for name, folder, one in zip(NAMES, folders, ended, strict=True):
        assert (name, one.problem, one.code) == (name, "", 0)
        assert one.stdout == b"it is|" + os.fsencode(folder), name
    assert not list(tmp_path.rglob("pwned"))


def test_many_large_values_arrive(box):
    environ = {f"VALUE_{n}": str(n) * 90_000 for n in range(8)}
    text = "".join(f"printf %s, ${{#VALUE_{n}}};" for n in range(8))
    ended = run(there(box, text, environ=environ))
    assert (ended.problem, ended.code, ended.stdout) == ("", 0, b"90000," * 8)


def test_a_payload_that_names_its_files_may_be_printed(box):
    token = new_token()
    path = upload_path(token, "transcript.jsonl")
    sent = f"\n\n{path}\n\n{path} 0\n x {token} 0\n".encode()
    text = "cat >&2; exit 5"
    ended = run(there(box, text, stdin=sent, token=token))
    assert (ended.code, ended.stdout) == (5, b"")
    assert ended.stderr == sent


def test_ten_megabytes_need_not_be_read(box):
    texts = ["exit 3", "exec 0<&-; sleep 0.2; exit 3", "head -c 1; exit 3"]
    tokens = [new_token() for _ in texts]
    pairs = zip(texts, tokens, strict=True)
    ended = run_together([there(box, text, stdin=bytes(10_000_000), token=t) for text, t in pairs])
    assert [(one.problem, one.code) for one in ended] == [("", 3)] * 3
    assert nothing_is_left(box, *tokens)


@pytest.mark.rule("M5")
def test_files_are_there_for_the_gate_alone_and_gone_after(box):
    token = new_token()
    text = 'ls -ld "${1%/*}"; cat "$1"; printf more > "${1%/*}/own"'
    path = upload_path(token, "transcript.jsonl")
    ended = run(
        there(
            box,
            *("/bin/sh", "-c", text, "sh", path),
            stdin=b"y" * 50_000,
            token=token,
            uploads=[
                Upload(name="transcript.jsonl", content=b"line\n\0\xff"),
                Upload(name="agent_transcript.jsonl", content=b""),
            ],
        )
    )
    first, rest = ended.stdout.split(b"\n", 1)
    assert first.startswith(b"drwx------")
    assert rest.replace(b"\0", b"") == b"line\n\xff"
    assert nothing_is_left(box, token)


@pytest.mark.rule("M5")
def test_nothing_of_our_own_environment_goes_there(box, monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "do not send")
    monkeypatch.setenv("LC_OURS", "do not send")
    ended = run(there(box, "env", environ={"GIVEN": "yes"}))
    lines = ended.stdout.splitlines()
    assert b"GIVEN=yes" in lines
    assert b"do not send" not in ended.stdout
    assert b"OLDPWD" not in ended.stdout
