"""A real sshd on a loopback port, with throw-away keys; its processes are found by a mark."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from process_table import is_gone, is_ssh, kill, name_of, parents, processes_with

__all__ = ["MARK", "Sshd", "is_gone", "missing", "processes_with"]

PROGRAM = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin:" + os.environ["PATH"])
MARK = "NOTYET_TEST_BOX"  # in the environment of everything that a session starts
PATIENCE = 20.0  # seconds; nothing here takes one


def missing():
    """Say what is missing to run a real sshd here; nothing if all is there."""
    if PROGRAM is None:
        return "there is no sshd (Debian: apt-get install openssh-server)"
    for name in ("ssh", "ssh-keygen"):
        if shutil.which(name) is None:
            return f"there is no {name} (Debian: apt-get install openssh-client)"
    return "" if os.path.isdir("/proc/self") else "processes are found through /proc"


class Sshd:
    """One sshd. `config` is an ssh_config in which it is called `box`.

    `login` is a login shell: what sshd is asked for is run by it, with `rc` (name -> text) in its
    home. `options` are further lines of sshd_config, `client` of the ssh_config. `tmp_size` gives
    it a /tmp of its own of that size (root only). `through` is another Sshd to jump over.
    """

    alias = "box"

    def __init__(self, folder, *, login="", rc=None, options=(), client=(), tmp_size="", **rest):
        self.folder = Path(folder)
        self.home = self.folder / "home"
        self.runtime = ""  # where control sockets go, while a test has it as its `box`
        self.port = 0
        self.id = secrets.token_hex(8)
        self.config = str(self.folder / "ssh_config")
        self.log = self.folder / "sshd.log"
        self._login, self._tmp_size = login, tmp_size
        self._options, self._client = list(options), list(client)
        self._through = rest.pop("through", None)
        self._environ = {"HOME": str(self.home), **rest.pop("environ", {})}
        assert not rest, rest
        self._process = None
        self.home.mkdir(parents=True)
        for name, text in (rc or {}).items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        for name, content in _keys().items():
            (self.folder / name).write_bytes(content)
            (self.folder / name).chmod(0o600)

    def url(self, path=None):
        """Return the workspace of a folder there."""
        return f"ssh://{self.alias}{self.folder if path is None else path}"

    @property
    def environ(self):
        """What makes notyet, and ssh under it, find this machine."""
        found = {"NOTYET_SSH_CONFIG": self.config}
        return {**found, "XDG_RUNTIME_DIR": self.runtime} if self.runtime else found

    def start(self):
        """Listen, on the port it had before if there is one."""
        for attempt in range(5):  # somebody else may take the port in between
            if not self.port or attempt:
                self.port = _free_port()
            self._write()
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if self._listens():
                return self
        raise AssertionError(f"sshd did not start: {self.log.read_text()}")

    def stop(self):
        """Stop listening; connections that are there stay."""
        if self._process is not None:
            # sshd tells its connections nothing when it is killed.
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self):
        """End everything: listener, connections, and what they started."""
        connections = self.connections()
        self.stop()
        for pid in connections:
            kill(pid)
        self.end_processes()

    def end_processes(self):
        """Let what sessions started end by itself, as it may be tidying up, and kill the rest."""
        is_gone(self.processes, 3.0)
        for pid in self.processes():
            kill(pid)

    def connections(self):
        """Return the ids of the processes that serve connections."""
        if self._process is None:
            return []
        found, rows = [], parents()
        wave = [self._process.pid]
        while wave:
            wave = [pid for pid, parent in rows.items() if parent in wave]
            found += [pid for pid in wave if name_of(pid).startswith("sshd")]
        return found

    def drop_connections(self):
        """Kill what serves the connections, as when the machine loses them; returns how many."""
        pids = self.connections()
        for pid in pids:
            kill(pid)
        return len(pids)

    def processes(self):
        """Return what sessions started and what still runs: process id -> command line."""
        return processes_with(f"{MARK}={self.id}")

    def victims(self):
        """Return those there that may be killed without having to answer for it.

        Not a copy that a shell made of itself: the one that watches over the others is one. If
        somebody kills it, what it watches over ends later, by the clock.
        """
        found, above = self.processes(), parents()
        return {pid: line for pid, line in found.items() if found.get(above.get(pid)) != line}

    def clients(self):
        """Return the ssh processes here that use the control folder: id -> command line."""
        return processes_with(self.runtime, is_ours=is_ssh) if self.runtime else {}

    def masters(self):
        """Return those that hold a connection for others."""
        return {pid: line for pid, line in self.clients().items() if _is_master(line)}

    def sessions(self):
        """Return those that run one command each over it, or ask something."""
        return {pid: line for pid, line in self.clients().items() if not _is_master(line)}

    def tmp(self):
        """Return /tmp as the sessions see it, from here."""
        return Path(f"/proc/{self._process.pid}/root/tmp") if self._tmp_size else Path("/tmp")  # noqa: S108  # it is about that folder

    def ssh(self, command, *options, **more):
        """Run a command there with the plain client."""
        argv = ["ssh", "-F", self.config, "-o", "BatchMode=yes", *options, self.alias, command]
        return subprocess.run(argv, capture_output=True, timeout=PATIENCE, **more)

    def config_with(self, name, *lines):
        """Write another ssh_config, in which the lines come first; returns its path."""
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines) + Path(self.config).read_text())
        return str(path)

    @contextmanager
    def as_box(self):
        """Give it a private control folder for a while; the connections end with that."""
        # The path of a control socket must be short.
        self.runtime = tempfile.mkdtemp(prefix="ny-", dir="/tmp")  # same
        try:
            yield self
        finally:
            for pid in self.clients():
                kill(pid)
            shutil.rmtree(self.runtime, ignore_errors=True)
            self.runtime = ""

    def _command(self):
        command = [PROGRAM, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.log)]
        if not self._tmp_size:
            return command
        # The folder of this sshd may lie in the /tmp that is hidden: it is taken along.
        small = self.folder / "small"
        small.mkdir(exist_ok=True)
        script = (
            'mount -t tmpfs -o "size=$1,mode=1777" tmpfs "$2" && mkdir -p "$4" && '
            'mount --bind "$3" "$4" && mount --move "$2" /tmp && shift 4 && exec "$@"'
        )
        there = str(small) + str(self.folder).removeprefix("/tmp")  # noqa: S108  # same
        values = (self._tmp_size, str(small), str(self.folder), there)
        return ["unshare", "-m", "sh", "-c", script, "sh", *values, *command]

    def _write(self):
        if os.geteuid() == 0:
            with suppress(OSError):
                os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        environ = {**self._environ, MARK: self.id}
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.folder / 'host_key'}",
            "PidFile none",
            f"AuthorizedKeysFile {self.folder / 'id.pub'}",
            "AuthenticationMethods publickey",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
            "UseDNS no",
            "PrintMotd no",
            "PrintLastLog no",
            *(line for line in self._options if line.startswith("MaxStartups ")),
            "MaxStartups 200",
            "KexAlgorithms curve25519-sha256",  # much cheaper than the default
            "SetEnv " + " ".join(f'"{name}={value}"' for name, value in environ.items()),
            *self._options,
        ]
        if self._login:
            lines.append(f"ForceCommand {self._login_program()}")
        if _is_known("PerSourcePenalties no"):  # an older sshd punishes nobody
            lines.append("PerSourcePenalties no")
        text = "".join(f"{line}\n" for line in lines)
        (self.folder / "sshd_config").write_text(text)
        key = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}")
        Path(self.config).write_text(self._client_config())

    def _client_config(self):
        lines = [
            f"Host {self.alias}",
            "  HostName 127.0.0.1",
            f"  Port {self.port}",
            f"  IdentityFile {self.folder / 'id'}",
            "  IdentitiesOnly yes",
            "  IdentityAgent none",
            f"  UserKnownHostsFile {self.folder / 'known_hosts'}",
            "  GlobalKnownHostsFile /dev/null",
            *(f"  {line}" for line in self._client),
        ]
        text = "".join(f"{line}\n" for line in lines)
        if self._through is not None:
            text += "  ProxyJump jump\n"
            text += self._through._client_config().replace("Host box", "Host jump")
        return text

    def _login_program(self):
        """Return a program that does what sshd does for a user with that login shell."""
        path = self.folder / "login"
        path.write_text(f'#!/bin/sh\nexec {self._login} -c "$SSH_ORIGINAL_COMMAND"\n')
        path.chmod(0o755)
        return path

    def _listens(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as peer:
                if peer.recv(4) == b"SSH-":
                    return True
            time.sleep(0.02)
        self.stop()
        return False


@cache
def _keys():
    """Make the keys that all of them share; returns files by their names."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("host_key", "id"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]
            subprocess.run([*command, f"{folder}/{name}"], check=True, timeout=PATIENCE)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@cache
def _is_known(line):
    """Tell whether this sshd takes a line."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "host_key").write_bytes(_keys()["host_key"])
        (Path(folder) / "host_key").chmod(0o600)
        command = [PROGRAM, "-t", "-f", "/dev/null", "-h", f"{folder}/host_key"]
        option = ["-o", line.replace(" ", "=")]
        done = subprocess.run([*command, *option], capture_output=True, timeout=PATIENCE)
        return done.returncode == 0


def _is_master(line):
    # One that goes through a jump host has a client to that one.
    return " -N " in line or " -W " in line or line.endswith("[mux]")


def _free_port():
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]
