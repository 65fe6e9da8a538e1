"""Commands whose output would hide failures are refused, and others get advice."""

import pytest

from notyet.gates.failures.commands import refusals, warnings


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("pytest -x", "`-x`"),
        ("pytest -qx tests", "`-qx`"),
        ("python3.12 -m pytest --maxfail=2", "`--maxfail=2`"),
        ("uv run --with pytest pytest --exitfirst", "`--exitfirst`"),
        ("coverage run -m pytest -x", "`-x`"),
        ("CI=1 npx jest --bail", "`--bail`"),
        ("npx vitest run --bail=1", "`--bail=1`"),
        ("python -m unittest -f", "`-f`"),
        ("go test -failfast ./...", "`-failfast`"),
        ("cargo test", "`--no-fail-fast`"),
        ("ruff check . && pytest", "`&&`"),
        ("set -e\nruff check .\npytest", "`set -e`"),
        ("bash -ec 'ruff check .; pytest'", "`set -e`"),
        ("sh -c 'pytest -x'", "`-x`"),
        ("pytest --lf", "`--lf`"),
        ("npx jest --onlyFailures", "`--onlyFailures`"),
        ("npx vitest run --reporter=junit --outputFile=r.xml", "`--reporter=default`"),
        ("vitest run --reporter json", "`--reporter=json`"),
    ],
)
def test_what_hides_failures_is_refused(script, word):
    (said,) = refusals(script)
    assert word in said


@pytest.mark.parametrize(
    "script",
    [
        "pytest -q -k 'x and y'",
        "pytest -pxdist",
        "pytest -k x",
        "cd sub && pytest",
        "cargo test --no-fail-fast -- --nocapture",
        "cargo clippy",
        "go vet ./...",
        "go test ./... | tee log",
        "npx jest -- --bail",
        "pytest --ff",
        "vitest run --reporter=default --reporter=junit --outputFile=r.xml",
        "echo 'pytest -x'",
        "pytest 'unclosed",
        "",
    ],
)
def test_what_runs_to_its_end_is_accepted(script):
    assert refusals(script) == []


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("make test", "`make` may run several checks"),
        ("npm test", "`npm` may run several checks"),
        ("tox -e py", "`tox` may run several checks"),
        ("pytest -q", "--continue-on-collection-errors"),
        ("go test ./...", "`-v`"),
    ],
)
def test_what_may_hide_failures_gets_advice(script, word):
    (said,) = warnings(script)
    assert word in said
    assert refusals(script) == []


@pytest.mark.parametrize(
    "script",
    ["npm ci", "pytest --continue-on-collection-errors", "go test -v ./...", "ruff check ."],
)
def test_what_shows_every_failure_gets_none(script):
    assert warnings(script) == []
