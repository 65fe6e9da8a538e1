"""Which machine a process is on: a process id means something only there."""

import os

import pytest

from notyet.run import proc

pytestmark = pytest.mark.rule("K18")


@pytest.fixture
def files(monkeypatch):
    """What is in the files that name a machine and its boot."""
    known = {"/etc/machine-id": b"m1\n", "/proc/sys/kernel/random/boot_id": b"b1\n"}

    def read(path):
        if path not in known:
            raise FileNotFoundError(path)
        return known[path]

    monkeypatch.setattr(proc, "read", read)
    monkeypatch.setattr(proc, "_own_machine", {})
    return known


def forgetting():
    proc._own_machine.clear()
    return proc.own_machine()


def test_a_machine_is_known_by_its_id_and_a_container_by_its_namespace(files, monkeypatch):
    monkeypatch.setattr("notyet.light.readlink", lambda path: "pid:[1]")
    assert proc.own_machine() == "m1 pid:[1]"
    files["/etc/machine-id"] = b"m2\n"
    assert proc.own_machine() == "m1 pid:[1]"  # read once
    assert forgetting() == "m2 pid:[1]"
    monkeypatch.setattr("notyet.light.readlink", lambda path: "pid:[2]")
    assert forgetting() == "m2 pid:[2]"


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
def test_without_an_id_a_machine_is_known_by_its_name_and_its_boot(files, monkeypatch, content):
    def unknown(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr("notyet.light.readlink", unknown)
    files.pop("/etc/machine-id") if content is None else files.update({"/etc/machine-id": content})
    assert proc.own_machine() == f"{os.uname().nodename} b1 "
