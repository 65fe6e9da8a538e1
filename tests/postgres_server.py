"""A PostgreSQL cluster of our own: in a temporary folder, on a Unix socket, without rights."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl", "psql", "pg_basebackup")
# Debian's are not on PATH. Where psql is hidden from it, the others are to be missing, too.
_DEBIAN = Path("/usr/lib/postgresql").glob("*/bin") if shutil.which("psql") else ()
_FOLDERS = [*os.get_exec_path(), *map(str, _DEBIAN)]


def missing():
    """Return why no cluster can be started here; empty if one can."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=os.pathsep.join(_FOLDERS))]
    return f"PostgreSQL is not installed: no {', '.join(absent)}" if absent else ""


class Cluster:
    """A server and its data, which are gone after `close`."""

    def __init__(self):
        self._user = {"user": "nobody"} if os.getuid() == 0 else {}  # it refuses to run as root
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a socket's path is short
        if self._user:
            shutil.chown(self.folder, "nobody")
        self._data = str(self.folder / "data")
        options = ("-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync")
        made = self.run("initdb", "-D", self._data, *options)
        assert made.returncode == 0, made.stderr
        self.start()

    def url(self, schema="", user="tester", database="postgres"):
        """Return the address of a database."""
        schema = f"&schema={schema}" if schema else ""
        return f"postgresql://{user}@/{database}?host={self.folder}{schema}"

    def start(self):
        # A crash of the system is not tested, so that nothing waits for the disk.
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off -c max_connections=200"
        self._control("-o", options, "start")

    def crash(self):
        """Stop the server as if it had crashed, and start it again."""
        self._control("-m", "immediate", "restart")

    def stop(self):
        self._control("-m", "immediate", "stop")

    def psql(self, text, database="postgres"):
        """Run a script; return what the server complains about."""
        return self.run("psql", "-q", "-d", database, input=text).stderr

    def replica(self):
        """Return another server that follows this one, and can only be read."""
        other = Cluster.__new__(Cluster)
        other._user, other.folder = self._user, Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        if other._user:
            shutil.chown(other.folder, "nobody")
        other._data = str(other.folder / "data")
        copied = self.run("pg_basebackup", "-D", other._data, "-R", "--no-sync", "-c", "fast")
        assert copied.returncode == 0, copied.stderr
        other.start()
        return other

    def close(self):
        self.run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder)

    def _control(self, *options):
        # A server that inherits a pipe keeps it open, so it has a log.
        log = str(self.folder / "log")
        done = self.run("pg_ctl", "-D", self._data, "-l", log, "-w", *options)
        assert done.returncode == 0, done.stdout

    def run(self, name, *options, **more):
        path = os.pathsep.join(_FOLDERS)
        return subprocess.run(
            [shutil.which(name, path=path), *options],
            capture_output=True,
            text=True,
            timeout=100,
            cwd=self.folder,
            env={
                "PATH": path,
                "LC_ALL": "C",
                "PGHOST": str(self.folder),
                "PGUSER": "tester",
                "PGOPTIONS": "-c client_min_messages=warning",  # no notices
            },
            **self._user,
            **more,
        )
