"""Every statement of the ledger is SQL that PostgreSQL takes too: the ledger will run on it."""

import ast
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from notyet import Ledger, ledger
from notyet.ledger import figures, past_stops
from notyet.ledger.connection import NOW
from notyet.ledger.migrations import STEPS, schema, statements
from support import decide, stop

VERBS = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s")
# What the variable parts of a statement may be, by the names of local variables.
PARTS = {
    "marks": "(?, ?)",
    "names": ", ended_at = ?, ending = ?",
    "where": "tasks.parent = ?",
    "table": "starts",
    "part": "runs",
    "which": "",
    "columns": "id, task",
    "reports": past_stops.WHOLE_REPORTS,
}
SQLITE_ONLY = {
    r"\bOR (REPLACE|IGNORE|ABORT|FAIL)\b": "ON CONFLICT ... DO",
    r"\b(rowid|last_insert_rowid)\b": "an id, and RETURNING",
    r"\b(iif|ifnull|instr|json_extract|json_each|printf|glob|total|strftime|unixepoch)\s*\(": (
        "CASE, coalesce, replace(a, b, '') != a, or Python"
    ),
    r"\b(min|max)\s*\([^()]*,": "CASE or Python",
    r"\?\d|[:@$][a-z]": "?",
    r"(?<![\w)?'])\+\s*[a-z]": "column + 0",
    r"\bLIMIT\s+-": "a large number",
    r"\bCROSS JOIN\b": "JOIN",
    r"\bIN\s+[a-z]": "IN (SELECT ...)",
    r"\b(AND|OR|NOT|WHERE)\s+(blocked|told|observed|held|hidden|\?)\s*($|AND|OR|\))": "= 1 or = 0",
    r"\bWHERE\s+[01]\s*$": "1 = 0",
    r'"[a-z_]+"': "names without quotes",
}


def text_of(node, names):
    """Return the text of an expression; None where it is no text, or not known here."""
    try:
        code = compile(ast.Expression(node), "", "eval")
        value = eval(code, names | PARTS)  # noqa: S307  # our own source
    except Exception:  # noqa: BLE001  # any other expression
        return None
    return value if isinstance(value, str) else None


def written():
    """Return all statements in the ledger's source, and where each stands."""
    found = {}
    for info in pkgutil.iter_modules(ledger.__path__):
        module = importlib.import_module(f"notyet.ledger.{info.name}")
        tree = ast.parse(Path(module.__file__).read_text())
        values = [
            value
            for node in ast.walk(tree)
            for value in (
                *(node.args[:1] if isinstance(node, ast.Call) else ()),
                *((node.value,) if isinstance(node, ast.Assign | ast.AnnAssign) else ()),
                *(node.elts if isinstance(node, ast.Tuple) else ()),
            )
        ]
        for value in values:
            text = text_of(value, vars(module))
            if text and VERBS.match(text) and "sqlite_master" not in text:
                whole = f"{text}(?, ?)" if text.rstrip().endswith(" IN") else text
                found.setdefault(whole, f"{info.name}.py:{value.lineno}")
    return found


def asked(tmp_path):
    """Return the statements that are composed for what people look for."""
    said = {}

    class Listening:
        def __init__(self, db):
            self._db = db

        def execute(self, text, values=()):
            said.setdefault(text, "history.py")
            return self._db.execute(text, values)

        def __getattr__(self, name):
            return getattr(self._db, name)

    book = Ledger(tmp_path / "ledger.db")
    decide(book, stop(cwd=str(tmp_path)))
    wishes = ({}, {"session": "s"}, {"gate": "g"}, {"host": "embedded"}, {"place": str(tmp_path)})
    for wish in wishes:
        for outcomes in ((), ("asking",), ("blocked", "passed")):
            wanted = past_stops.StopFilter(outcomes=outcomes, since=1.0, **wish)
            book.connection.read(lambda db, wanted=wanted: past_stops.find(Listening(db), wanted))
            book.connection.read(
                lambda db, wanted=wanted: figures.count_stops(Listening(db), wanted, 1.0, 1e12)
            )
    return {text: where for text, where in said.items() if VERBS.match(text)}


def test_there_are_many_statements_and_none_is_for_sqlite_only(tmp_path):
    all_of_them = written() | asked(tmp_path)
    assert len(all_of_them) > 100
    wrong = [
        f"{where}: {' '.join(text.split())}\n  write: {instead}"
        for text, where in all_of_them.items()
        for pattern, instead in SQLITE_ONLY.items()
        if re.search(pattern, " ".join(without_hints(text).split()))
    ]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT OR REPLACE INTO t VALUES (?)",
        "SELECT iif(a, b, c) FROM t",
        "SELECT a FROM t WHERE +b = ?",
        "SELECT a FROM t WHERE told",
        "SELECT a FROM t WHERE b < max(?, c)",
        "SELECT a FROM t WHERE b NOT IN held",
    ],
)
def test_a_statement_for_sqlite_only_is_found(text):
    assert any(re.search(pattern, text) for pattern in SQLITE_ONLY)


def without_hints(text):
    """Drop what only SQLite needs to be told: which index to use."""
    return re.sub(r"\bINDEXED BY \w+", "", text)


def for_postgresql(text):
    """Return a statement as PostgreSQL takes it."""
    numbers = iter(range(1, 1000))
    text = text.replace(NOW, "extract(epoch FROM clock_timestamp())")
    return re.sub(r"\?", lambda _: f"${next(numbers)}", without_hints(text))


def tables_for_postgresql():
    """Return the tables, with PostgreSQL's types."""
    rules = {
        r"INTEGER PRIMARY KEY( AUTOINCREMENT)?": (
            "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
        ),
        r"\bINTEGER\b": "BIGINT",
        r"\bREAL\b": "DOUBLE PRECISION",
        r"\bBLOB\b": "BYTEA",
        r" WITHOUT ROWID": "",
    }
    parts = []
    steps = []
    for step in STEPS:
        step(SimpleNamespace(execute=steps.append))
    for part in (*statements(schema()), *steps):
        for pattern, instead in rules.items():
            part = re.sub(pattern, instead, part)  # noqa: PLW2901  # the same, translated
        parts.append(part)
    return parts


@pytest.fixture
def psql(tmp_path):
    """Run SQL on a PostgreSQL server of this test; return what it complains about."""
    folders = [*os.get_exec_path(), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
    path = os.pathsep.join(folders)
    programs = {name: shutil.which(name, path=path) for name in ("initdb", "pg_ctl", "psql")}
    missing = [name for name, found in programs.items() if not found]
    if missing:
        pytest.skip(f"PostgreSQL is not installed: no {', '.join(missing)}")
    user = {"user": "nobody"} if os.getuid() == 0 else {}  # it refuses to run as root
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # a socket's path is short
    if user:
        shutil.chown(folder, "nobody")
    environ = {"PATH": path, "LC_ALL": "C", "PGHOST": str(folder), "PGUSER": "tester"}
    environ["PGOPTIONS"] = "-c client_min_messages=warning"  # no notices

    def run(name, *options, **more):
        return subprocess.run(
            [programs[name], *options],
            capture_output=True,
            text=True,
            timeout=100,
            cwd=folder,
            env=environ,
            **user,
            **more,
        )

    data = str(folder / "data")
    made = run("initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync")
    assert made.returncode == 0, made.stderr
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    # A server that inherits a pipe keeps it open.
    log = str(folder / "log")
    started = run("pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start")
    try:
        assert started.returncode == 0, started.stdout
        yield lambda text: run("psql", "-q", "-d", "postgres", input=text).stderr
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def test_postgresql_takes_every_statement(tmp_path, psql):
    assert psql(";\n".join(tables_for_postgresql()) + ";") == ""
    all_of_them = written() | asked(tmp_path)
    script = "".join(
        f"\\echo\nPREPARE s{number} AS {' '.join(for_postgresql(text).split())};\n"
        for number, text in enumerate(all_of_them)
    )
    assert psql(script) == ""
