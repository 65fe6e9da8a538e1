import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

import postgres_server
import sshd as sshd_program
import stores

# Real programs, which are fetched first, the benchmark and the browser: only if named.
APART = [
    os.path.join(os.path.dirname(__file__), name)
    for name in ("clients", "bench", "browser", "package")
]


def pytest_addoption(parser):
    parser.addoption("--write-golden", action="store_true", help="write golden files anew")
    parser.addoption("--store", choices=["file", "postgresql"], default="file", help="of ledgers")


def pytest_configure(config):
    """Start the cluster of this session; the workers of pytest-xdist inherit its address."""
    is_worker = hasattr(config, "workerinput")
    if config.option.store == "postgresql" and not is_worker and not postgres_server.missing():
        config.cluster = postgres_server.Cluster()
        os.environ[stores.URL] = config.cluster.url()


def pytest_unconfigure(config):
    cluster = getattr(config, "cluster", None)
    if cluster is not None:
        os.environ.pop(stores.URL)
        cluster.close()


def pytest_collection_modifyitems(config, items):
    """Skip on PostgreSQL what is about a file, and everything where it is not installed."""
    if config.option.store == "file":
        return
    absent = postgres_server.missing()
    for item in items:
        about_file = item.get_closest_marker("file_only")
        reason = absent or (about_file and f"about a file: {about_file.args[0]}")
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_ignore_collect(collection_path, config):
    """Leave out the folders that run apart, unless the command line names them."""
    folder = str(collection_path)
    named = any(os.path.abspath(arg).startswith(folder) for arg in config.args)
    return True if folder in APART and not named else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Do not count the lines of tests that are marked so: that would be most of their time.

    The mark of pytest-cov for this does nothing in a worker of pytest-xdist.
    """
    if item.get_closest_marker("uncounted") is None:
        return (yield)
    tracing = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracing)


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path_factory, monkeypatch):
    """No test reads or writes the user's own files."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("notyet.config.files.real_home", lambda: str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in ("LEDGER", "DISABLE", "INSIDE", "SUPERVISED"):
        monkeypatch.delenv(f"NOTYET_{name}", raising=False)
    for name in ("PROJECT_DIR", "CODE_STOP_HOOK_BLOCK_CAP", "CONFIG_DIR"):
        monkeypatch.delenv(f"CLAUDE_{name}", raising=False)
    for name in ("CODEX_HOME", "AI_AGENT", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    # A worker that adopts orphans has children that later tests do not expect.
    monkeypatch.setattr("notyet.run.groups._become_subreaper", lambda: False)
    from notyet.ledger.passes import CHOOSING  # not before coverage counts lines

    # A pass counts with the same values of these; what runs the tests may set them, as make does.
    for name in CHOOSING - {"PATH", "HOME"}:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True, scope="session")
def _store(request):
    """Ledgers are where `--store` says."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        if request.config.option.store == "postgresql":
            stores.use(monkeypatch)
        yield


@pytest.fixture(scope="session")
def cluster():
    """A PostgreSQL server of this test process."""
    reason = postgres_server.missing()
    if reason:
        pytest.skip(reason)
    server = postgres_server.Cluster()
    yield server
    server.close()


@pytest.fixture
def pooled(cluster):
    """Return the address of a pgbouncer that gives each transaction another connection."""
    from support import wait_for  # not before coverage counts lines

    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("there is no pgbouncer (Debian: apt-get install pgbouncer)")
    folder = cluster.folder
    (folder / "bouncer.ini").write_text(
        f"[databases]\n* = host={folder} user=tester\n[pgbouncer]\nunix_socket_dir = {folder}\n"
        "listen_port = 6543\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n"
        "server_round_robin = 1\n"
    )
    user = {"user": "nobody"} if os.getuid() == 0 else {}
    command = [program, "-q", str(folder / "bouncer.ini")]
    bouncer = subprocess.Popen(command, stderr=subprocess.DEVNULL, **user)
    wait_for((folder / ".s.PGSQL.6543").exists)
    yield f"postgresql://tester@/postgres?host={folder}&port=6543&schema=pooled"
    bouncer.terminate()
    bouncer.wait()


@pytest.fixture
def git_project(tmp_path):
    """A git project with one commit."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "file.txt").write_text("one\n")
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "one")
    return str(project)


def git(project, *args):
    author = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", *author, *args], cwd=project, check=True, capture_output=True)


@pytest.fixture
def app(tmp_path):
    """A project on the box, which is this machine under another name."""
    folder = tmp_path / "there" / "app"
    (folder / ".git").mkdir(parents=True)
    return folder


@contextmanager
def _started(tmp_path_factory):
    reason = sshd_program.missing()
    if reason:
        pytest.skip(reason)
    server = sshd_program.Sshd(tmp_path_factory.mktemp("sshd"))
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture(scope="session")
def sshd(tmp_path_factory):
    """A real sshd of this test process; nothing points at it yet."""
    with _started(tmp_path_factory) as server:
        yield server


@pytest.fixture
def box(sshd, monkeypatch):
    """The sshd, found by notyet under the name `box`; connections end with the test."""
    with _found(sshd, monkeypatch):
        yield sshd


@pytest.fixture(scope="session")
def _warm_sshd(tmp_path_factory):
    with _started(tmp_path_factory) as server, server.as_box():
        yield server


@pytest.fixture
def warm_box(_warm_sshd, monkeypatch):
    """An sshd like `box`, to which the tests share their connections: much quicker."""
    _find(_warm_sshd, monkeypatch)
    yield _warm_sshd
    _warm_sshd.end_processes()  # of a test that failed, they are not the next one's


@pytest.fixture
def new_box(tmp_path_factory, monkeypatch):
    """Start another sshd with options (see `Sshd`), and have notyet find that one as `box`."""
    reason = sshd_program.missing()
    if reason:
        pytest.skip(reason)
    with ExitStack() as stack:

        def start(**options):
            shell = options.get("login", "").partition(" ")[0]
            if shell and shutil.which(shell) is None:
                pytest.skip(f"there is no {shell} (Debian: apt-get install {shell})")
            server = sshd_program.Sshd(tmp_path_factory.mktemp("sshd"), **options)
            stack.callback(server.close)
            server.start()
            stack.enter_context(_found(server, monkeypatch))
            return server

        yield start


@contextmanager
def _found(server, monkeypatch):
    with server.as_box():
        _find(server, monkeypatch)
        yield


def _find(server, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
