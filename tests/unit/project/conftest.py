"""A project of files, on a machine without any tool."""

import json

import pytest


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a project of files, on a machine without any tool."""
    empty = tmp_path / "no-tools"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    root = tmp_path / "p"
    root.mkdir()

    def project(files):
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))
            if "/bin/" in name:
                path.chmod(0o755)
        return str(root)

    project.tools = empty
    return project
