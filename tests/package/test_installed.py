"""The wheel of `make package`, installed in each supported Python of this machine."""

import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from clients.fetching import found_pythons
from notyet import __version__

DIST = Path(__file__).parents[2] / "build" / "dist"
PYTHONS = [sys.executable, *found_pythons(dict(os.environ))]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_runs_gates(machine, tmp_path, python):
    (wheel,) = DIST.glob("*.whl")
    machine.run(python, "-m", "venv", tmp_path / "python")
    machine.run(tmp_path / "python/bin/python", "-m", "pip", "install", "--quiet", wheel)
    notyet = tmp_path / "python/bin/notyet"
    assert machine.run(notyet, "--version") == f"notyet {__version__}\n"
    assert machine.run(notyet, "schema").startswith("{")
    machine.run(notyet, "trust", "--yes")
    assert "✗ tests" in machine.run(notyet, "check", code=1)


def test_the_packages_have_what_belongs_into_them():
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"notyet", f"notyet-{__version__}.dist-info"}
    assert {"notyet/py.typed", "notyet/hook/hook.py"} <= {*names}
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"docs/reference/schema/notyet.toml.schema.json", "CHANGELOG.md"} <= inside
    assert not [name for name in inside if name.startswith(("build/", ".venv/", ".git/"))]
