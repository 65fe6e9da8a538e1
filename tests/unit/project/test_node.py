"""Scripts of a package.json that check something are found."""

import pytest

from notyet.project import detect
from projects import shown


def test_scripts_of_a_package_that_check_something_are_found(project):
    scripts = {
        "start": "node .",
        "test": "vitest",
        "lint": "eslint .",
        "type-check": "tsc",
        "build": "vite build",
        "format:check": "prettier -c .",
    }
    assert shown(project({"package.json": {"scripts": scripts}})) == {
        "format": "npm run format:check |  | package.json:8",
        "lint": "npm run lint |  | package.json:5",
        "types": "npm run type-check |  | package.json:6",
        "build": "npm run build |  | package.json:7",
        "tests": "npm test |  | package.json:4",
    }


@pytest.mark.parametrize(
    "script",
    [
        *('echo "Error: no test specified" && exit 1', " ", 5, None, ["x"]),
        *("exit 0", "echo no linter", "true && echo done; exit 1", ":"),
        *("jest --watch", "jest --watchAll=true", "vitest watch", "tsc -w", "tsc -p . -w"),
        *("nodemon --exec jest", "npm run build && vitest watch"),
        *("eslint --fix .", "prettier --write .", "eslint . && prettier --write src"),
    ],
)
def test_scripts_that_check_nothing_never_end_or_write_are_no_gates(project, script):
    assert shown(project({"package.json": {"scripts": {"test": script}}})) == {}


@pytest.mark.parametrize("text", ["[]", '{"scripts": []}', '{"scripts": null}', "{}", "", "5"])
def test_a_package_without_scripts_has_none(project, text):
    found = detect(project({"package.json": text}))
    assert (found.proposals, found.mistakes) == ((), ())


@pytest.mark.parametrize(
    ("files", "run"),
    [
        ({"package-lock.json": "{}"}, "npm test"),
        ({"pnpm-lock.yaml": ""}, "pnpm test"),
        ({"yarn.lock": ""}, "yarn test"),
        ({"bun.lockb": ""}, "bun run test"),
    ],
)
def test_the_lock_file_says_who_runs_scripts(project, files, run):
    package = {"scripts": {"test": "x"}}
    assert shown(project({"package.json": package, **files}))["tests"].split(" |")[0] == run


def test_what_the_package_says_counts_before_a_lock_file(project):
    package = {"packageManager": "pnpm@9.1", "scripts": {"lint": "x"}}
    root = project({"package.json": package, "yarn.lock": ""})
    assert shown(root)["lint"].startswith("pnpm run lint")


@pytest.mark.parametrize(
    "script",
    [
        *("jest --watch false", "jest --watchAll=false", "ng test --watch=false", "jest -w 2"),
        *("npm test -w packages/a", "echo tests && jest", "eslint --fix-dry-run ."),
    ],
)
def test_scripts_that_only_look_so_are_gates(project, script):
    assert set(shown(project({"package.json": {"scripts": {"test": script}}}))) == {"tests"}
