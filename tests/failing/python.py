"""Projects for pytest, unittest, mypy and ruff."""

# ruff: noqa: E501  # files of projects, as they are

from __future__ import annotations

from failing.projects import Case

_PYTEST = ("PYTHON", "-m", "pytest", "-p", "no:cacheprovider")
_QUIET = (*_PYTEST, "-q", "--continue-on-collection-errors")
_FAKE = r"""
import sys
LIES = '''
=================================== FAILURES ===================================
__________________________________ test_lied ___________________________________
E   assert False
=========================== short test summary info ============================
FAILED tests/test_other.py::test_lied - boom
ERROR tests/test_gone.py - ImportError: boom
1 failed, 1 passed in 0.10s
'''
"""

PYTEST = [
    Case(
        "pytest",
        "one",
        _QUIET,
        {"tests/test_a.py": "def test_good(): pass\ndef test_bad():\n    assert 1 == 2\n"},
    ),
    Case(
        "pytest",
        "two",
        _PYTEST,
        {
            "tests/test_a.py": (
                "import pytest\n"
                "def test_bad():\n    assert [1, 2, 3] == [1, 2, 4]\n"
                "class TestMore:\n"
                "    @pytest.mark.parametrize('word', ['a b', 'c - d', 'e]'])\n"
                "    def test_each(self, word):\n        assert word == 'a b'\n"
                "@pytest.fixture\n"
                "def broken():\n    raise OSError('no fixture today')\n"
                "def test_setup(broken): pass\n"
                "@pytest.mark.skip\ndef test_skipped(): pass\n"
                "@pytest.mark.xfail\ndef test_expected(): assert 0\n"
            )
        },
    ),
    Case(
        "pytest",
        "twice",
        _QUIET,
        {
            "a/test_same.py": "def test_bad():\n    assert 'a' == 'b'\n",
            "b/test_same.py": "def test_bad():\n    assert 'a' == 'c'\n",
            "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\n",
        },
    ),
    Case(
        "pytest",
        "load",
        _QUIET,
        {
            "tests/test_a.py": "import module_that_is_missing\ndef test_x(): pass\n",
            "tests/test_b.py": "def test_x(:\n",
            "tests/test_c.py": "def test_good(): pass\ndef test_bad(): assert 0\n",
        },
    ),
    Case(
        "pytest",
        "interrupted",
        (*_PYTEST, "-q"),
        {
            "tests/test_a.py": "import module_that_is_missing\ndef test_x(): pass\n",
            "tests/test_c.py": "def test_good(): pass\ndef test_bad(): assert 0\n",
        },
        exit_code=2,
    ),
    Case(
        "pytest",
        "clean",
        (*_PYTEST, "-q"),
        {"tests/test_a.py": "def test_good(): pass\n"},
        exit_code=0,
    ),
    Case(
        "pytest",
        "early",
        (*_PYTEST, "-x"),
        {"tests/test_a.py": "def test_bad(): assert 0\ndef test_worse(): assert 0\n"},
    ),
    Case(
        "pytest",
        "hostile",
        (*_PYTEST, "-q", "-s"),
        {
            "tests/test_a.py": (
                _FAKE + "def test_good(): print(LIES)\n"
                "def test_bad():\n    print(LIES)\n    assert 0, LIES\n"
                "def test_end(): print(LIES)\n"
            )
        },
    ),
    Case(
        "pytest",
        "captured",
        _QUIET,
        {
            "tests/test_a.py": (
                _FAKE + "def test_good(): print(LIES)\n"
                "def test_bad():\n    print(LIES)\n    sys.stderr.write(LIES)\n    assert 0, LIES\n"
            )
        },
    ),
    Case(
        "pytest",
        "nothing",
        (*_PYTEST, "-q"),
        {"tests/helper.py": ""},
        exit_code=5,
    ),
    Case(
        "pytest",
        "usage",
        (*_PYTEST, "-q", "--no-such-option"),
        {"tests/test_a.py": "def test_good(): pass\n"},
        exit_code=4,
    ),
    Case(
        "pytest",
        "missing",
        (*_PYTEST, "-q", "tests/test_gone.py"),
        {"tests/test_a.py": "def test_good(): pass\n"},
        exit_code=4,
    ),
    Case(
        "pytest",
        "conftest",
        (*_PYTEST, "-q"),
        {
            "conftest.py": "import module_that_is_missing\n",
            "tests/test_a.py": "def test_good(): pass\n",
        },
        exit_code=4,
    ),
    Case(
        "pytest",
        "internal",
        (*_PYTEST, "-q"),
        {
            "conftest.py": "def pytest_runtest_logreport(report): raise ValueError('hook')\n",
            "tests/test_a.py": "def test_good(): pass\n",
        },
        exit_code=3,
    ),
    Case(
        "pytest",
        "xdist",
        (*_QUIET, "-n", "2"),
        {
            "tests/test_a.py": "import os\ndef test_good(): pass\ndef test_bad(): assert 0\n",
            "tests/test_b.py": "import os\ndef test_good(): pass\ndef test_dies(): os._exit(3)\n",
        },
    ),
    Case(
        "pytest",
        "verbose",
        (*_PYTEST, "-v", "-rA", "--tb=short"),
        {
            "tests/test_a.py": (
                "def test_good(): print('error: printed')\ndef test_bad(): assert 0, 'long'\n"
            )
        },
    ),
    Case(
        "pytest",
        "subtests",
        _QUIET,
        {
            "tests/test_a.py": (
                "import unittest\n"
                "def test_sub(subtests):\n"
                "    for n in range(3):\n"
                "        with subtests.test('even', n=n):\n            assert n % 2 == 0\n"
                "class TestOld(unittest.TestCase):\n"
                "    def test_sub(self):\n"
                "        for n in range(4):\n"
                "            with self.subTest(n=n):\n                self.assertEqual(n % 2, 0)\n"
            )
        },
    ),
]

_UNITTEST = ("PYTHON", "-m", "unittest")

UNITTEST = [
    Case(
        "unittest",
        "one",
        _UNITTEST,
        {
            "test_a.py": (
                "import unittest\n"
                "class A(unittest.TestCase):\n"
                "    def test_good(self): pass\n"
                "    def test_bad(self):\n        self.assertEqual(1, 2)\n"
            )
        },
    ),
    Case(
        "unittest",
        "two",
        (*_UNITTEST, "-v"),
        {
            "test_a.py": (
                "import unittest\n"
                "class A(unittest.TestCase):\n"
                "    def test_good(self): pass\n"
                "    def test_bad(self):\n        '''Say what it does.'''\n"
                "        self.assertEqual(1, 2)\n"
                "    def test_raise(self):\n        raise OSError('no disk')\n"
                "    def test_sub(self):\n"
                "        for n in range(4):\n"
                "            with self.subTest(n=n):\n                self.assertEqual(n % 2, 0)\n"
                "    @unittest.expectedFailure\n    def test_surprise(self): pass\n"
                "    @unittest.skip('later')\n    def test_later(self): pass\n"
            )
        },
    ),
    Case(
        "unittest",
        "twice",
        _UNITTEST,
        {
            "test_a.py": (
                "import unittest\n"
                "class A(unittest.TestCase):\n    def test_bad(self): self.fail('one')\n"
                "class B(unittest.TestCase):\n    def test_bad(self): self.fail('two')\n"
            )
        },
    ),
    Case(
        "unittest",
        "load",
        _UNITTEST,
        {
            "test_a.py": "import module_that_is_missing\n",
            "test_b.py": (
                "import unittest\n"
                "class B(unittest.TestCase):\n    def test_bad(self): self.fail('two')\n"
            ),
            "test_c.py": (
                "import unittest\n"
                "class C(unittest.TestCase):\n"
                "    @classmethod\n    def setUpClass(cls): raise OSError('no class')\n"
                "    def test_bad(self): self.fail('two')\n"
            ),
        },
    ),
    Case(
        "unittest",
        "clean",
        _UNITTEST,
        {
            "test_a.py": (
                "import unittest\nclass A(unittest.TestCase):\n    def test_good(self): pass\n"
            )
        },
        exit_code=0,
    ),
    Case(
        "unittest",
        "early",
        (*_UNITTEST, "-f"),
        {
            "test_a.py": (
                "import unittest\n"
                "class A(unittest.TestCase):\n"
                "    def test_bad(self): self.fail('one')\n"
                "    def test_worse(self): self.fail('two')\n"
            )
        },
    ),
    Case(
        "unittest",
        "hostile",
        _UNITTEST,
        {
            "test_a.py": (
                "import sys, unittest\n"
                "LIES = '''\n"
                + "=" * 70
                + "\nFAIL: test_lied (test_a.A.test_lied)\n"
                + "-" * 70
                + "\nRan 1 test in 0.000s\n\nFAILED (failures=1)\n'''\n"
                "class A(unittest.TestCase):\n"
                "    def test_good(self): print(LIES, file=sys.stderr)\n"
                "    def test_bad(self): self.fail(LIES)\n"
            )
        },
    ),
]

_MYPY = ("PYTHON", "-m", "mypy", "--cache-dir=/dev/null")

MYPY = [
    Case("mypy", "one", (*_MYPY, "a.py"), {"a.py": "x: int = 'text'\n"}),
    Case(
        "mypy",
        "two",
        (*_MYPY, "--show-column-numbers", "--pretty", "pkg"),
        {
            "pkg/__init__.py": "",
            "pkg/a.py": "x: int = 'text'\n\ny: int = 'text'\nimport no_such_module\n",
            "pkg/b.py": "def f(a: int) -> str:\n    return a\nf('')\n",
        },
    ),
    Case(
        "mypy",
        "load",
        (*_MYPY, "a.py", "b.py"),
        {"a.py": "def f(:\n", "b.py": "x: int = ''\n"},
        exit_code=2,
    ),
    Case("mypy", "clean", (*_MYPY, "a.py"), {"a.py": "x: int = 1\n"}, exit_code=0),
    Case("mypy", "missing", (*_MYPY, "gone.py"), {"a.py": ""}, exit_code=2),
    Case(
        "mypy",
        "hostile",
        (*_MYPY, "a.py"),
        {
            "a.py": (
                "from typing import Literal\n"
                "x: Literal['b.py:1: error: lie  [misc] Found 1 error in 1 file'] = 'y'\n"
                "reveal_type(x)\n"
            )
        },
    ),
]

_RUFF = ("ruff", "check", "--no-cache", "--isolated")
_UNUSED = "import os\nimport sys\n\n\ndef f():\n    import os\n"

RUFF = [
    Case("ruff", "one", (*_RUFF, "--output-format", "concise"), {"a.py": "import os\n"}),
    Case("ruff", "two", (*_RUFF,), {"a.py": _UNUSED, "sub/b.py": "import os\nx = y\n"}),
    Case(
        "ruff",
        "grouped",
        (*_RUFF, "--output-format", "grouped"),
        {"a.py": _UNUSED, "sub/b.py": "import os\nx = y\n"},
    ),
    Case("ruff", "twice", (*_RUFF, "--output-format", "concise"), {"a.py": _UNUSED}),
    Case(
        "ruff",
        "load",
        (*_RUFF, "--output-format", "full"),
        {"a.py": "def f(:\n", "b.py": "import os\n"},
    ),
    Case("ruff", "clean", _RUFF, {"a.py": "x = 1\n"}, exit_code=0),
    Case(
        "ruff",
        "hostile",
        (*_RUFF,),
        {
            "a.py": 'import os  # b.py:1:1: F401 lie\n"""\n --> b.py:1:1\nFound 1 error.\n"""\nx = y\n'
        },
    ),
]

CASES = [*PYTEST, *UNITTEST, *MYPY, *RUFF]
