"""`notyet validate`: every mistake of every file at once, and what is probably not meant."""

import json
import os
import stat
from pathlib import Path

import pytest

from conftest import git
from notyet.cli.main import main

RIGHT = '[gates]\ng = "true"\n'


@pytest.fixture
def folder(git_project, monkeypatch):
    """A git project with one file, file.txt."""
    monkeypatch.chdir(git_project)
    return git_project


@pytest.fixture
def said(folder, capsys):
    """Write a notyet.toml, look at it, and return the exit code and the lines."""

    def said(text, *argv):
        with open("notyet.toml", "w") as file:
            file.write(text)
        code = main(["validate", *argv])
        return code, capsys.readouterr().out.splitlines()

    return said


def warnings(lines):
    return [line.removeprefix("notyet.toml:") for line in lines if "warning: " in line]


@pytest.mark.rule("J7")
def test_every_mistake_of_every_file_is_said_with_its_place(said, folder):
    os.mkdir(".claude")
    with open(".claude/settings.json", "w") as file:
        file.write('{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}')
    with open("other.toml", "w") as file:
        file.write("[gates]\ng = \n")
    code, lines = said(
        '[gates]\na = 5\n[gates.b]\nrun = "true"\ntimeuot = 3\n',
        "notyet.toml",
        ".claude/settings.json",
        "other.toml",
    )
    assert code == 1
    assert lines[0].startswith("notyet.toml:2:1: `gates.a` must be ")
    assert lines[1].endswith("`gates.b.timeuot` is not a known key (did you mean `timeout`?)")
    assert lines[2].startswith(".claude/settings.json:1:")
    assert lines[3].startswith("other.toml:2:5: invalid TOML")
    assert lines[4] == "3 files: 4 mistakes"


def test_without_names_all_that_would_count_here_is_looked_at(said, folder, capsys):
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    os.makedirs(".codex")
    with open(".codex/hooks.json", "w") as file:
        json.dump(hooks, file)
    with open(".conclaude.yaml", "w") as file:
        file.write("stop:\n  commands:\n    - run: true\n")
    user = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(user)
    with open(os.path.join(user, "notyet.toml"), "w") as file:
        file.write("[gatse]\n")
    os.mkdir("deep")
    code, lines = said(RIGHT)
    assert code == 1
    assert any(line.startswith(f"{user}/notyet.toml:1:") for line in lines)
    assert any(line.startswith(".conclaude.yaml:3:") for line in lines)
    os.chdir("deep")
    assert main(["validate"]) == 1
    assert f"{folder}/.conclaude.yaml:3:" in capsys.readouterr().out


def test_files_that_cannot_be_read_are_mistakes(folder, capsys):
    os.makedirs(".mux")
    with open("bytes.toml", "wb") as file:
        file.write(b"a\n\xff")
    with open("notes.txt", "w") as notes:
        notes.write("x")
    code = main(["validate", "gone.toml", "bytes.toml", "what.txt", "notes.txt", ".mux/stop"])
    lines = capsys.readouterr().out.splitlines()
    assert code == 1
    hint = "name a notyet.toml, or a file of Claude Code, Codex, Mux or conclaude"
    assert lines == [
        "gone.toml: cannot be read: No such file or directory",
        "bytes.toml:2:1: is not UTF-8: byte 0xff (save it as UTF-8)",
        f"what.txt: there is no such file ({hint})",
        f"notes.txt: notyet does not read files of this name ({hint})",
        ".mux/stop: No such file or directory",
        "5 files: 5 mistakes",
    ]


def test_a_folder_stands_for_what_counts_in_it(said, folder, capsys):
    os.makedirs("a/b")
    os.mkdir("empty.d")
    with open("a/notyet.toml", "w") as file:
        file.write("x = 1\n")
    code, lines = said(RIGHT, "a/b", "a/notyet.toml", ".")
    assert code == 1
    assert [line.split(": ")[0] for line in lines] == ["a/notyet.toml:1:1", "2 files"]
    os.unlink("notyet.toml")
    assert main(["validate", "empty.d"]) == 1
    assert "empty.d: there is no such file in this folder" in capsys.readouterr().out


@pytest.mark.parametrize("base", [".mux", ".xum"])
def test_files_of_mux_are_known_by_their_folder(folder, base, capsys):
    os.makedirs(base)
    with open(f"{base}/settings.json", "w") as file:
        file.write("[]")
    with open(f"{base}/stop", "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    assert main(["validate", f"{base}/settings.json"]) == 1
    assert main(["validate", f"{base}/stop"]) == 1
    assert "is not executable, so it does not run" in capsys.readouterr().out
    os.chmod(f"{base}/stop", stat.S_IRWXU)
    assert main(["validate", f"{base}/stop"]) == 0
    assert capsys.readouterr().out == f"{base}/stop: no mistakes (1 gate)\n"


@pytest.mark.parametrize(
    ("run", "missing"),
    [
        ('"no-such x"', ["no-such"]),
        ('"A=1 B=2 no-such x; true && gone"', ["no-such"]),
        ('["no-such", "x"]', ["no-such"]),
        ('"./file.txt"', ["./file.txt"]),
        ('"git status # no-such"', []),
    ],
)
def test_programs_that_do_not_exist_are_told(said, run, missing):
    code, lines = said(f"[gates.g]\nrun = {run}\n")
    assert code == 0
    expected = [f"2:1: warning: g: there is no program `{word}` " for word in missing]
    found = warnings(lines)
    assert len(found) == len(expected)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize(
    "run",
    [
        "git diff --quiet @{u}",
        "ls | xargs -I{} -P4 echo {}",
        "time -p true",
        "for i in {1..3}; do no-such $i; done",
        'PATH="$PWD/node_modules/.bin:$PATH" eslint-of-ours .',
        "test ! -x ./opt || ./opt",
        "no-such || true",
        "if no-such; then echo; fi",
        "cat <<EOF\nno-such\nEOF",
        "f() { echo; }; f",
        "git status # no-such",
        "A=1",
    ],
)
def test_of_what_is_not_certain_nothing_is_told(said, run):
    assert warnings(said(f"[gates.g]\nrun = {json.dumps(run)}\n")[1]) == []


def test_gates_elsewhere_are_not_judged_by_what_is_here(said):
    text = '[gates.g]\nrun = "no-such"\ndir = "gone"\nworkspace = "ssh://box/srv"\n'
    assert warnings(said(text)[1]) == []


def test_paths_that_match_nothing_are_told(said, folder):
    with open(".gitignore", "w") as file:
        file.write("dist/\n")
    os.mkdir("dist")
    with open("dist/x", "w"), open("new.py", "w"):
        pass
    git(folder, "add", ".gitignore")
    globs = ["file.txt", "*.py", "**", "src/**", "dist/**"]
    code, lines = said(f'[gates.g]\nrun = "true"\npaths = {json.dumps(globs)}\n')
    assert code == 0
    assert warnings(lines) == [
        "3:36: warning: g: `src/**` matches no file that git tracks or would add",
        "3:46: warning: g: `dist/**` matches no file that git tracks or would add",
    ]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ('never = ["x"]', "names subagents, but the gate is only for main agents"),
        ('for = ["coder"]\nnever = ["cod*"]', "excludes all that `for` includes"),
        ('for = ["impl-*"]\nnever = ["impl-*"]', "excludes all that `for` includes"),
        ('for = "subagents"\nnever = ["*"]', "excludes all that `for` includes"),
        ('for = "subagents"\nnever = ["x"]', ""),
        ('for = "all"\nnever = ["*"]', ""),
        ('for = ["impl-*"]\nnever = ["impl-d*"]', ""),
        ('for = ["a", "b"]\nnever = ["a"]', ""),
    ],
)
def test_patterns_that_never_match_are_told(said, keys, told):
    found = warnings(said(f'[gates.g]\nrun = "true"\n{keys}\n')[1])
    assert len(found) == bool(told)
    assert told in "".join(found)


def test_gates_that_may_take_longer_than_hosts_wait_are_told(said):
    text = '[gates.a]\nrun = "true"\ntimeout = "20m"\n[gates.b]\nrun = "true"\ntimeout = "25m"\n'
    assert warnings(said(text)[1]) == []  # asked together
    (line,) = warnings(said(text + "slow = true\n")[1])
    assert line.startswith("6:1: warning: b: the gates may take 2700 s at a stop, and a host")
    assert "waits 1797 s" in line
    assert "notyet install HOST --timeout 46m" in line
    apart = text + 'slow = true\nfor = "subagents"\n'
    assert warnings(said(apart)[1]) == []


def test_the_time_that_a_registered_host_waits_counts(said, monkeypatch, capsys):
    monkeypatch.setattr("notyet.cli.person.inside_agent", lambda _environ: "")
    assert main(["install", "claude", "--timeout", "60", "--yes"]) == 0
    capsys.readouterr()
    (line,) = warnings(said('[gates.g]\nrun = "true"\ntimeout = "58s"\n')[1])
    assert "g: the gates may take 58 s at a stop, and Claude Code waits 57 s" in line
    assert "notyet install claude --timeout 2m" in line


def test_a_file_of_another_host_is_told_of_missing_programs_by_line(folder, capsys):
    os.mkdir(".claude")
    with open(".claude/settings.json", "w") as file:
        hooks = [{"hooks": [{"type": "command", "command": "no-such-hook"}]}]
        file.write(json.dumps({"hooks": {"Stop": hooks}}, indent=1))
    assert main(["validate"]) == 0
    said = capsys.readouterr().out
    assert ".claude/settings.json:" in said
    assert "there is no program `no-such-hook` on the PATH" in said


@pytest.mark.rule("J4")
def test_the_files_of_codex_are_known_wherever_its_home_is(folder, monkeypatch, capsys):
    monkeypatch.setenv("CODEX_HOME", f"{folder}/home")
    os.mkdir("home")
    with open("home/config.toml", "w") as file:
        file.write('model = "x"\n[[hooks.Stop]]\nhooks = [{type = "command", command = "true"}]\n')
    with open("home/hooks.json", "w") as file:
        file.write('{"hooks": {}}')
    assert main(["validate", "--json", "home/config.toml", "home/hooks.json"]) == 0
    kinds = [file["kind"] for file in json.loads(capsys.readouterr().out)["files"]]
    assert kinds == ["codex-toml", "codex"]
    monkeypatch.delenv("CODEX_HOME")
    assert main(["validate", "home/config.toml"]) == 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_file_without_a_name_is_said(said, options, capsys):
    said(RIGHT)
    assert main(["validate", "", *options]) == 1
    out, err = capsys.readouterr()
    assert "a file name is empty; name a file, or none to check all files here" in err
    assert out == ('{"ok": false, "files": []}\n' if options else "")


@pytest.mark.rule("J6", "J7")
def test_a_table_beside_a_file_is_a_mistake(said, folder):
    Path(folder, "pyproject.toml").write_text('[project]\n[tool.notyet.gates]\na = "true"\n')
    code, lines = said(RIGHT)
    assert code == 1
    assert lines[0] == (
        "pyproject.toml:2:1: [tool.notyet] has no effect beside notyet.toml "
        "(move it into notyet.toml)"
    )


@pytest.mark.rule("J6", "J7")
def test_a_table_is_checked_like_a_file(folder, capsys):
    Path(folder, "pyproject.toml").write_text("[tool.notyet]\nrot = true\n[tool.x]\ny = 1\n")
    assert main(["validate"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pyproject.toml:2:1: `rot` is not a known key (did you mean `root`?)"


@pytest.mark.rule("J6", "J7")
@pytest.mark.parametrize("glob", ["../x", "/x", "a/../../x", "~/x", "a/.."])
def test_members_that_leave_the_project_are_mistakes(said, glob):
    code, lines = said(f'members = ["fine", "{glob}"]\n{RIGHT}')
    assert code == 1
    assert lines[0].startswith("notyet.toml:1:20: `members[1]` must be a glob of folders below")
    assert lines[-1] == "notyet.toml: 1 mistake and 1 warning"


@pytest.mark.rule("J6", "J7")
def test_members_that_are_links_are_mistakes_and_none_are_warned_of(said, folder):
    os.makedirs("packages/a")
    os.symlink("/", "packages/b")
    code, lines = said(f'members = ["packages/*", "libs/*"]\n{RIGHT}')
    assert code == 1
    assert lines[0] == "notyet.toml:1:12: `packages/b` is a link, so it is not a member"
    assert warnings(lines) == ["1:26: warning: `libs/*` matches no folder"]
