"""`notyet with ... --workspace`: an agent here, whose files and gates are elsewhere (M)."""

import json
import signal

import pytest

from commands import running, until
from hook_runs import trust
from with_runs import ANSWERS, LEARNS, Started, listed, tasks
from workspaces import trust_there, unreachable, write_there


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "agent.toml").write_text(ANSWERS)
    (folder / "notyet.toml").write_text('[gates]\nnot_read = "exit 1"\n')
    return folder


def lines(done):
    return [" ".join(line.split()[1:]) for line in done.stderr.splitlines()]


@pytest.mark.rule("M1", "M5")
def test_an_agent_is_sent_back_until_the_work_there_passes(warm_box, app, here, run_here):
    script = LEARNS.replace("touch ready", f"touch '{app}/ready'")
    (here / "agent.toml").write_text(script)
    write_there(app, "notyet.toml", '[gates]\nready = "test -e ready"\n')
    trust_there(warm_box, app)
    done = run_here(here, "--workspace", warm_box.url(app))
    assert (done.returncode, done.stdout) == (0, "Now it is.\n")
    assert "gates ready on box (at most 3 send-backs)" in lines(done)
    assert not any("not_read" in line for line in lines(done))


@pytest.mark.rule("M5")
def test_the_workspace_is_in_the_json_and_in_the_command_that_goes_on(
    warm_box, app, here, run_here
):
    write_there(app, "notyet.toml", '[gates]\nnever = "exit 1"\n')
    trust_there(warm_box, app)
    url = warm_box.url(app)
    done = run_here(here, "--workspace", f"{url}//", "--max-blocks", "0", "--json")
    summary = json.loads(done.stdout)
    assert (summary["workspace"], summary["outcome"]) == (url, "capped")
    again = f"notyet with scripted:agent.toml --workspace {url} --resume {summary['session']}"
    assert any(again in line for line in lines(done))
    (task,) = listed(here)
    assert task["workspace"] == url
    shown = tasks(here, "show", summary["task"]).stdout
    assert f"--workspace {url} --resume" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("workspace")] == [
        ["workspace", url]
    ]


@pytest.mark.rule("N5", "M5")
def test_an_untrusted_file_there_gates_nothing_and_is_reported(warm_box, app, here, run_here):
    write_there(app, "notyet.toml", '[gates]\nnever = "exit 1"\n')
    url = warm_box.url(app)
    done = run_here(here, "--workspace", url, "--json")
    summary = json.loads(done.stdout)
    assert (summary["outcome"], summary["stop_reason"]) == ("skipped", "untrusted")
    assert summary["warnings"] == [f"{url}/notyet.toml is not trusted; run: notyet trust {url}"]


@pytest.mark.rule("M3")
def test_an_agent_does_not_begin_where_files_cannot_be_read(
    warm_box, app, here, run_here, monkeypatch
):
    done = run_here(here, "--workspace", warm_box.url(app / "gone"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"notyet with: {warm_box.url(app)}/gone cannot be read: {app}/gone does not exist on box\n"
    )
    unreachable(monkeypatch, warm_box, here)
    done = run_here(here, "--workspace", warm_box.url(app))
    assert (done.returncode, "refused" in done.stderr) == (1, True)
    assert listed(here) == []


@pytest.mark.rule("M1")
def test_a_workspace_that_is_local_is_none_whatever_a_file_says(here, run_here):
    text = 'workspace = "ssh://nobody.invalid/srv"\n[gates]\na = "test -e agent.toml && exit 1"\n'
    (here / "notyet.toml").write_text(text)
    trust(here / "notyet.toml")
    done = run_here(here, "--workspace", "local", "--json", "--max-blocks", "0")
    summary = json.loads(done.stdout)
    assert (summary["workspace"], summary["outcome"]) == ("", "capped")
    assert "gates a (at most 0 send-backs)" in lines(done)
    again = f"--workspace local --resume {summary['session']}"
    assert any(again in line for line in lines(done))
    assert again in tasks(here, "show", summary["task"]).stdout


@pytest.mark.rule("M5")
def test_a_file_here_can_name_the_workspace(warm_box, app, here, run_here):
    text = f'workspace = "{warm_box.url(app)}"\n[gates]\nthere = "test -e .git"\n'
    (here / "notyet.toml").write_text(text)
    trust(here / "notyet.toml")
    done = run_here(here, "--json")
    summary = json.loads(done.stdout)
    assert (summary["outcome"], summary["workspace"]) == ("passed", warm_box.url(app))
    assert "gates there on box (at most 3 send-backs)" in lines(done)
    (task,) = listed(here)
    assert task["workspace"] == warm_box.url(app)
    shown = tasks(here, "show", summary["task"]).stdout
    assert [line.split() for line in shown.splitlines() if line.startswith("workspace")] == [
        ["workspace", warm_box.url(app)]
    ]
    assert "--workspace" not in shown  # the file says so again
    (here / "notyet.toml").write_text("[gates]\n")
    trust(here / "notyet.toml")
    shown = tasks(here, "show", summary["task"]).stdout
    assert f"--workspace {warm_box.url(app)} --resume" in shown


@pytest.mark.rule("M2")
def test_ctrl_c_ends_the_look_at_a_machine_that_says_nothing(warm_box, tmp_path, here):
    waits = tmp_path / "waits"
    config = tmp_path / "silent"
    config.write_text(f"Host box\n  ProxyCommand sh -c 'echo $$ > {waits}; exec sleep 100'\n")
    environ = warm_box.environ | {"NOTYET_SSH_CONFIG": str(config)}
    argv = ("with", "scripted:agent.toml", "x", "--workspace", "ssh://box/srv")
    with Started(here, *argv, environ=environ) as started:
        assert until(lambda: waits.exists() and waits.read_text().strip())
        started.send(signal.SIGINT)
        assert started.wait() == 130
    assert until(lambda: not running(int(waits.read_text())))
