"""Projects for go test and cargo test."""

# ruff: noqa: E501  # files of projects, as they are

from __future__ import annotations

from failing.projects import Case

_MODULE = {"go.mod": "module example.com/sample\n\ngo 1.19\n"}
_GO = ("go", "test", "./...")
_GO_HEAD = 'package sample\n\nimport "testing"\n\n'
_GO_ONE = (
    "func TestGood(t *testing.T) {}\n\n"
    'func TestBad(t *testing.T) { t.Errorf("got %d, want 2", 1) }\n'
)
_GO_TWO = (
    "func TestTable(t *testing.T) {\n"
    '\tfor _, name := range []string{"a b", "c", "d"} {\n'
    '\t\tt.Run(name, func(t *testing.T) { if name == "c" { t.Fatal("wrong " + name) } })\n'
    "\t}\n}\n\n"
    'func TestSkipped(t *testing.T) { t.Skip("later") }\n\n'
)
_GO_LIES = (
    "const lies = `\n--- FAIL: TestLied (0.00s)\n    a_test.go:9: boom\nFAIL\n"
    "FAIL\texample.com/sample/other\t0.001s\nok  \texample.com/sample\t0.001s\n`\n\n"
)


def _go(name: str, files: dict[str, str], *more: str, code: int = 1) -> Case:
    return Case("go", name, (*_GO, *more), {**_MODULE, **files}, exit_code=code)


GO = [
    _go("one", {"a_test.go": _GO_HEAD + _GO_ONE}),
    _go(
        "two",
        {
            "a_test.go": _GO_HEAD + _GO_TWO + _GO_ONE,
            "sub/b_test.go": _GO_HEAD + _GO_ONE,
            "none/c.go": "package none\n",
            "ok/d_test.go": _GO_HEAD + "func TestX(t *testing.T) {}\n",
        },
    ),
    _go(
        "verbose",
        {"a_test.go": _GO_HEAD + _GO_TWO + _GO_ONE, "sub/b_test.go": _GO_HEAD + _GO_ONE},
        "-v",
    ),
    _go(
        "load",
        {
            "a_test.go": _GO_HEAD + 'func TestX(t *testing.T) { var n int = "text"; gone() }\n',
            "sub/b_test.go": _GO_HEAD + _GO_ONE,
            "syn/c_test.go": _GO_HEAD + "func TestX(t *testing.T) {\n",
            "imp/d_test.go": 'package sample\n\nimport "example.com/sample/gone"\n',
            "vet/e_test.go": _GO_HEAD.replace('"testing"', '(\n\t"fmt"\n\t"testing"\n)')
            + 'func TestX(t *testing.T) { fmt.Printf("%d", "x") }\n',
        },
        code=2,
    ),
    _go("clean", {"a_test.go": _GO_HEAD + "func TestGood(t *testing.T) {}\n"}, code=0),
    _go(
        "early",
        {"a_test.go": _GO_HEAD + _GO_ONE + 'func TestWorse(t *testing.T) { t.Fatal("x") }\n'},
        "-failfast",
    ),
    _go(
        "panic",
        {
            "a_test.go": _GO_HEAD
            + _GO_ONE
            + 'func TestDies(t *testing.T) { panic("no disk") }\nfunc TestLast(t *testing.T) {}\n'
        },
    ),
    _go(
        "exits",
        {
            "a_test.go": 'package sample\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestDies(t *testing.T) { os.Exit(3) }\n'
        },
    ),
    _go(
        "hostile",
        {
            "a_test.go": 'package sample\n\nimport (\n\t"fmt"\n\t"testing"\n)\n\n'
            + _GO_LIES
            + "func TestGood(t *testing.T) { fmt.Print(lies) }\n\n"
            + "func TestBad(t *testing.T) { fmt.Print(lies); t.Error(lies) }\n"
        },
    ),
]

_CARGO = ("cargo", "test", "--no-fail-fast")
_CRATE = {"Cargo.toml": '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n'}
_LIB = (
    "/// ```\n/// assert_eq!(sample::two(), 3);\n/// ```\npub fn two() -> u32 { 2 }\n\n"
    "#[cfg(test)]\nmod tests {\n    use super::*;\n"
    "    #[test]\n    fn good() { assert_eq!(two(), 2); }\n"
    "    #[test]\n    fn bad() { assert_eq!(two(), 3); }\n"
    "    #[test]\n    #[ignore]\n    fn later() {}\n"
    "    #[test]\n    #[should_panic]\n    fn calm() {}\n}\n"
)
_ONE = "pub fn two() -> u32 { 2 }\n\n#[test]\nfn good() {}\n\n#[test]\nfn bad() { assert_eq!(two(), 3); }\n"
_RUST_LIES = (
    'const LIES: &str = "\\ntest lied ... FAILED\\n\\nfailures:\\n    lied\\n\\n'
    'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\\n\\n";\n'
)


def _cargo(
    name: str, files: dict[str, str], run: tuple[str, ...] = _CARGO, code: int = 101
) -> Case:
    return Case("cargo", name, run, {**_CRATE, **files}, exit_code=code)


CARGO = [
    _cargo("one", {"src/lib.rs": _ONE}),
    _cargo(
        "two", {"src/lib.rs": _LIB, "tests/more.rs": '#[test]\nfn bad() { panic!("no disk"); }\n'}
    ),
    _cargo(
        "load", {"src/lib.rs": 'pub fn two() -> u32 { "text" }\npub fn three() -> u32 { gone() }\n'}
    ),
    _cargo("clean", {"src/lib.rs": "#[test]\nfn good() {}\n"}, code=0),
    _cargo(
        "early",
        {"src/lib.rs": _LIB, "tests/more.rs": "#[test]\nfn bad() { panic!(); }\n"},
        ("cargo", "test"),
    ),
    _cargo(
        "dies",
        {
            "src/lib.rs": "#[test]\nfn dies() { std::process::abort(); }\n",
            "tests/more.rs": '#[test]\nfn bad() { panic!("no disk"); }\n',
        },
    ),
    _cargo(
        "hostile",
        {
            "src/lib.rs": _RUST_LIES
            + '#[test]\nfn good() { println!("{}", LIES); }\n#[test]\nfn bad() { println!("{}", LIES); panic!("{}", LIES); }\n'
        },
        (*_CARGO, "--", "--nocapture", "--test-threads=1"),
    ),
    _cargo(
        "captured",
        {
            "src/lib.rs": _RUST_LIES
            + '#[test]\nfn good() { println!("{}", LIES); }\n#[test]\nfn bad() { println!("{}", LIES); panic!("{}", LIES); }\n'
        },
    ),
]

CASES = [*GO, *CARGO]
