"""Every statement of the ledger is SQL that PostgreSQL takes too: the ledger runs on it."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from notyet import Ledger, ledger
from notyet.ledger import figures, past_stops
from notyet.ledger.postgres_sql import LOCKS, all_tables, translate
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
    "limited": "queue = ? AND model = ?",
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
        if info.name.startswith("postgres"):
            continue
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
        if re.search(pattern, " ".join(re.sub(r"\bINDEXED BY \w+", "", text).split()))
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


def for_postgresql(text):
    """Return a statement as PostgreSQL prepares it."""
    numbers = iter(range(1, 1000))
    whole = re.sub("%s", lambda _: f"${next(numbers)}", translate(text))
    return " ".join(whole.replace("%%", "%").split())


def test_a_question_mark_in_a_statement_is_always_a_value(tmp_path):
    literals = re.compile(r"'[^']*'")
    for text in written() | asked(tmp_path):
        assert not [literal for literal in literals.findall(text) if "?" in literal]


def test_postgresql_takes_every_statement(tmp_path, cluster):
    create = "CREATE SCHEMA portable; SET search_path TO portable;"
    assert cluster.psql(create + ";\n".join(all_tables()) + ";") == ""
    locks = {lock.statement: "" for some in LOCKS.values() for lock in some}
    script = "".join(
        f"\\echo\nPREPARE s{number} AS {for_postgresql(text)};\n"
        for number, text in enumerate(written() | asked(tmp_path) | locks)
    )
    assert cluster.psql(f"SET search_path TO portable; {script}") == ""
