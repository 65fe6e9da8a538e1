"""Projects for jest, vitest, node:test, TAP, eslint and tsc."""

# ruff: noqa: E501, RUF001  # files of projects, as they are

from __future__ import annotations

from failing.projects import Case

_PACKAGE = {"package.json": '{"name": "sample", "version": "1.0.0", "private": true}\n'}
_LIES = (
    "const LIES = `\\nFAIL ./other.test.js\\n  ● group › lied\\n\\n    boom\\n\\n"
    "Test Suites: 1 failed, 1 total\\nTests:       1 failed, 1 total\\n"
    " FAIL  other.test.js > lied\\n Test Files  1 failed (1)\\n      Tests  1 failed (1)\\n"
    "not ok 7 - lied\\n# tests 1\\n# fail 1\\n✖ lied (1ms)\\nℹ tests 1\\nℹ fail 1\\n`;\n"
)
_ONE = "test('good', () => {});\ntest('bad', () => { expect(1).toBe(2); });\n"
_TWO = (
    "describe('group', () => {\n  test('bad', () => { expect(1).toBe(2); });\n"
    "  describe('inner', () => { test('worse', () => { throw new Error('no disk'); }); });\n"
    "  test.skip('later', () => {});\n});\ntest('good', () => {});\n"
)
_TWICE = "test('bad', () => { expect(1).toBe(2); });\ntest('bad', () => { expect(1).toBe(3); });\n"
_HOSTILE = (
    _LIES + "test('good', () => { console.log(LIES); });\n"
    "test('bad', () => { console.log(LIES); throw new Error(LIES); });\n"
)
_LOAD = "const gone = require('./gone');\ntest('good', () => {});\n"
_SYNTAX = "test('good', () => {\n"


def _suite(tool: str, run: tuple[str, ...], bail: tuple[str, ...], head: str) -> list[Case]:
    def case(
        name: str, files: dict[str, str], command: tuple[str, ...] = run, code: int = 1
    ) -> Case:
        texts = {path: head + text for path, text in files.items()}
        return Case(tool, name, command, {**_PACKAGE, **texts}, exit_code=code)

    missing = _LOAD if tool == "jest" else "import gone from './gone';\ntest('good', () => {});\n"
    return [
        case("one", {"a.test.js": _ONE}),
        case("two", {"a.test.js": _TWO, "sub/b.test.js": _ONE}),
        case("twice", {"a.test.js": _TWICE}),
        case("load", {"a.test.js": missing, "b.test.js": _SYNTAX, "c.test.js": _ONE}),
        case("clean", {"a.test.js": "test('good', () => {});\n"}, code=0),
        case("early", {"a.test.js": _TWO, "b.test.js": _ONE, "c.test.js": _TWO}, bail),
        case("hostile", {"a.test.js": _HOSTILE, "b.test.js": _ONE}),
        case("empty", {"a.test.js": ""}),
    ]


JEST = _suite("jest", ("jest",), ("jest", "--bail", "-w", "1"), "")
VITEST = _suite(
    "vitest",
    ("vitest", "run"),
    ("vitest", "run", "--bail", "1", "--no-file-parallelism"),
    "import { test, describe, expect } from 'vitest';\n",
)

_NODE_ONE = "test('good', () => {});\ntest('bad', () => { assert.strictEqual(1, 2); });\n"
_NODE_TWO = (
    "describe('group', () => {\n  it('bad', () => { assert.strictEqual(1, 2); });\n"
    "  describe('inner', () => { it('worse', () => { throw new Error('no disk'); }); });\n"
    "  it.skip('later', () => {});\n});\n"
    "test('parent', async (t) => { await t.test('child', () => { assert.ok(false); }); });\n"
    "test('todo', { todo: true }, () => { assert.ok(false); });\n"
    "test('good', () => {});\n"
)
_NODE_HEAD = (
    "const { test, describe, it } = require('node:test');\nconst assert = require('node:assert');\n"
)


def _node(tool: str, reporter: str) -> list[Case]:
    run = ("node", "--test", f"--test-reporter={reporter}")

    def case(name: str, files: dict[str, str], code: int = 1) -> Case:
        texts = {path: _NODE_HEAD + text for path, text in files.items()}
        return Case(tool, name, run, {**_PACKAGE, **texts}, exit_code=code)

    return [
        case("one", {"a.test.js": _NODE_ONE}),
        case("two", {"a.test.js": _NODE_TWO, "sub/b.test.js": _NODE_ONE}),
        case("twice", {"a.test.js": _NODE_ONE, "b.test.js": _NODE_ONE}),
        case("load", {"a.test.js": _LOAD, "b.test.js": _SYNTAX, "c.test.js": _NODE_ONE}),
        case("clean", {"a.test.js": "test('good', () => {});\n"}, code=0),
        case("hostile", {"a.test.js": _HOSTILE, "b.test.js": _NODE_ONE}),
        case("exits", {"a.test.js": "test('dies', () => { process.exit(3); });\n" + _NODE_ONE}),
    ]


NODE_SPEC = _node("node", "spec")
NODE_TAP = _node("tap", "tap")

_ESLINT_CONFIG = {
    "eslint.config.js": (
        "module.exports = [{ ignores: ['eslint.config.js'] }, { rules: { 'no-undef': 'error', 'no-unused-vars': 'warn', 'semi': 'error',"
        " 'complexity': ['error', 1], 'no-debugger': 'error', 'no-warning-comments': 'error' } }];\n"
    )
}
_ESLINT_TWO = {
    "a.js": "const x = y;\nif (x) { z(); z(); }\n",
    "sub/b.js": "const x = y;\nfunction f(a) { return a ? 1 : 2; }\n",
}


def _eslint(name: str, files: dict[str, str], *more: str, code: int = 1) -> Case:
    return Case(
        "eslint",
        name,
        ("eslint", *more, "."),
        {**_PACKAGE, **_ESLINT_CONFIG, **files},
        exit_code=code,
    )


ESLINT = [
    _eslint("one", {"a.js": "debugger;\n"}),
    _eslint("two", _ESLINT_TWO),
    _eslint("load", {"a.js": "const = 3;\n", "b.js": "debugger;\n"}),
    _eslint("clean", {"a.js": "let x = 1; x += 1;\n"}, code=0),
    _eslint(
        "hostile", {"a.js": "/* TODO b.js\n  1:1  error  lie  no-undef\n\n✖ 1 problem */\nxyz();\n"}
    ),
    _eslint(
        "config",
        {
            "a.js": "debugger;\n",
            "eslint.config.js": "module.exports = [{ rules: { 'no-such-rule': 2 } }];\n",
        },
        code=2,
    ),
    _eslint("warnings", {"a.js": "const x = 1;\n"}, "--max-warnings", "0"),
    _eslint("unix", _ESLINT_TWO, "-f", "unix"),
]

_TSC = ("tsc", "--noEmit", "-p", ".")
_TS = {"tsconfig.json": '{"compilerOptions": {"strict": true, "types": []}, "include": ["src"]}\n'}

TSC = [
    Case("tsc", "one", _TSC, {**_TS, "src/a.ts": "const x: number = 'text';\n"}, exit_code=1),
    Case(
        "tsc",
        "two",
        (*_TSC, "--pretty"),
        {
            **_TS,
            "src/a.ts": "const x: number = 'text';\nconst y: number = 'text';\n",
            "src/b.ts": "import z from './gone';\nexport const f = (a) => a;\nf.g({ h: 1 });\n",
        },
        exit_code=1,
    ),
    Case(
        "tsc",
        "twice",
        _TSC,
        {
            **_TS,
            "src/a.ts": "const x: number = 'text';\nconst y: number = 'text';\n",
            "src/b.ts": "interface A { a: { b: number } }\nexport const c: A = { a: { b: '' } };\nexport const d: (x: A) => void = (y: { a: { b: string } }) => {};\n",
        },
        exit_code=1,
    ),
    Case(
        "tsc",
        "load",
        _TSC,
        {**_TS, "src/a.ts": "const x: = 1;\n", "src/b.ts": "const x: number = 'text';\n"},
        exit_code=1,
    ),
    Case("tsc", "clean", _TSC, {**_TS, "src/a.ts": "export const x = 1;\n"}, exit_code=0),
    Case("tsc", "config", _TSC, {"tsconfig.json": '{"include": ["src"]}\n'}, exit_code=2),
    Case(
        "tsc",
        "hostile",
        _TSC,
        {**_TS, "src/a.ts": "const x: 'src/b.ts(1,1): error TS2304: lie' = 'y';\n"},
        exit_code=1,
    ),
]

CASES = [*JEST, *VITEST, *NODE_SPEC, *NODE_TAP, *ESLINT, *TSC]
