"""What the tests of configuration in workspaces share: projects on the box, trusted or not."""

import os
from pathlib import Path

from config_places import KINDS
from notyet.config.files import ConfigFile
from notyet.config.load import load
from notyet.config.remote import RemoteSource
from notyet.config.trust import candidate, grant

PATIENCE = 30.0


def write_there(folder, name, text, *, mode=0o644):
    """Write a file of a project on the box, which is this machine under another name."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def trust_there(box, folder, name="notyet.toml"):
    """Trust a file of a project there, as a person would."""
    hosts = [KINDS[name].split("-")[0]]
    source = RemoteSource(box.url(folder), PATIENCE, hosts)
    assert not source.problem
    file = ConfigFile(path=f"{box.url(folder)}/{name}", kind=KINDS[name], source=source)
    grant(candidate(file, os.environ), os.environ)


def load_there(box, folder, host="notyet", **options):
    """Return what is in force for an agent whose workspace is that folder."""
    options = {"patience": PATIENCE} | options
    return load("/", host, os.environ, workspace=box.url(folder), **options)


def load_here(here, host="notyet", **options):
    """Return what is in force for an agent in a folder of this machine."""
    return load(str(here), host, os.environ, **({"patience": PATIENCE} | options))


def naming(box, app, rest=""):
    """Return a file that names the workspace of a project on the box."""
    return f'workspace = "{box.url(app)}"\n[gates]\nlocal = "x"\n{rest}'


def unreachable(monkeypatch, box, tmp_path):
    """Let the box be somewhere where nobody listens; with another file, no connection is shared."""
    config = tmp_path / "nobody_listens"
    lines = Path(box.config).read_text().splitlines()
    config.write_text("\n".join("  Port 1" if "Port " in line else line for line in lines))
    monkeypatch.setenv("NOTYET_SSH_CONFIG", str(config))


def places(setup):
    """Return where each gate runs, by its name."""
    return {gate.name: (gate.check.workspace, gate.check.dir) for gate in setup.gates}
