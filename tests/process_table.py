"""Finding processes in /proc: by their mark, their parents and their names."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path


def processes_with(text, *, is_ours=lambda _pid: True):
    """Return what runs with that text in its environment or command line: id -> command line."""
    found, wanted = {}, text.encode()
    for pid in _pids():
        words = read(pid, "cmdline")
        if not (wanted in words or wanted in read(pid, "environ")) or not is_ours(pid):
            continue
        if pid != os.getpid() and _state(pid) not in ("Z", "X", ""):
            found[pid] = words.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def processes_in(folder):
    """Return the processes whose folder this is."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdecimal() and os.readlink(f"/proc/{entry}/cwd") == str(folder):
                found.append(int(entry))
        except OSError:
            continue
    return found


def is_gone(look, patience=20.0):
    """Wait until a look at processes or files finds nothing; tells whether it came to that."""
    end = time.monotonic() + patience
    while look():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _fields(pid):
    """Return state, parent and so on; the name before them may hold anything."""
    return read(pid, "stat").rpartition(b")")[2].decode().split()


def _state(pid):
    return (_fields(pid) or [""])[0]


def parents():
    rows = {pid: _fields(pid) for pid in _pids()}
    return {pid: int(row[1]) for pid, row in rows.items() if row}


def children():
    """Return the processes that this one started and has not waited for."""
    return {pid for pid, parent in parents().items() if parent == os.getpid()}


def name_of(pid):
    return read(pid, "comm").decode(errors="replace").rstrip("\n")


def is_ssh(pid):
    return name_of(pid) == "ssh"


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
