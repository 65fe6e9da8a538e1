"""Shell texts: a parser for plain shell.

It knows lists, pipes, subshells, quotes, redirections and heredocs, and refuses all others, such as
loops, conditions and functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


def names(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


_LONGEST = 64 * 1024  # characters of a text
DEEPEST = 20  # subshells and shells in shells
_CONTROL = names(
    "if then else elif fi for while until do done case esac { } function select coproc [["
)
_OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "(", ")")
_REDIRECTION = re.compile(r"(?:\d++|&)?(?:<<<|<<-?|>>|>\||<>|>&|<&|>|<)")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)")  # `{--co,}` is several words
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+\+?=")


class NotUnderstood(ValueError):  # noqa: N818  # not an error of ours
    """The text is no plain shell."""


@dataclass(frozen=True)
class Word:
    """One word of a command."""

    raw: str  # as it was written
    text: str  # without quotes
    is_dynamic: bool = False  # the shell puts something in: a variable, an output, several words


@dataclass
class Simple:
    """A command with its words."""

    words: list[Word] = field(default_factory=list)
    writes: bool = False  # it redirects its output into a file
    is_silent: bool = False  # what it prints is not shown


@dataclass
class Pipeline:
    """Commands with pipes between them; a list in place of a command is a subshell."""

    parts: list[Simple | Script] = field(default_factory=list)
    is_negated: bool = False


@dataclass
class AndOr:
    """Pipelines with `&&` and `||` between them."""

    pipelines: list[Pipeline] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    is_background: bool = False


Script = list[AndOr]


def parsed(text: str) -> Script:
    """Parse a shell text. Raises NotUnderstood."""
    if len(text) > _LONGEST:
        raise NotUnderstood("it is too long")
    return _Parser(text).parsed()


class _Parser:
    def __init__(self, script: str) -> None:
        self._text = script
        self._at = 0
        self._depth = 0
        self._heredocs: list[tuple[str, bool]] = []  # delimiters, and whether tabs are stripped

    def parsed(self) -> Script:
        script = self._script()
        if self._at < len(self._text):
            raise NotUnderstood("a ) without its (")
        if self._heredocs:
            raise NotUnderstood("a heredoc without an end")
        return script

    def _script(self) -> Script:
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotUnderstood("too many subshells")
        script: Script = []
        while True:
            self._skip(newlines=True)
            if self._at >= len(self._text) or self._peek() == ")":
                self._depth -= 1
                return script
            script.append(self._and_or())

    def _and_or(self) -> AndOr:
        found = AndOr([self._pipeline()])
        while True:
            self._skip()
            sign = self._peek()
            if sign in {"&&", "||"}:
                self._at += 2
                self._skip(newlines=True)
                found.operators.append(sign)
                found.pipelines.append(self._pipeline())
                continue
            if sign in {";", "&"}:
                self._at += 1
                found.is_background = sign == "&"
            elif sign and sign != ")":
                raise NotUnderstood(f"{sign} is out of place")
            return found

    def _pipeline(self) -> Pipeline:
        found = Pipeline()
        self._skip()
        while self._text.startswith("!", self._at) and self._text[self._at + 1 : self._at + 2] in (
            " ",
            "\t",
        ):
            found.is_negated = True
            self._at += 1
            self._skip()
        found.parts.append(self._command())
        while True:
            self._skip()
            sign = self._peek()
            if sign not in {"|", "|&"}:
                return found
            self._at += len(sign)
            self._skip(newlines=True)
            found.parts.append(self._command())

    def _command(self) -> Simple | Script:
        if self._peek() == "(":
            self._at += 1
            if self._text.startswith("(", self._at):
                raise NotUnderstood("arithmetic")
            script = self._script()
            if self._peek() != ")":
                raise NotUnderstood("a ( without its )")
            self._at += 1
            around = Simple()
            self._redirections(around)
            if around.is_silent:
                _silence(script)
            return script
        simple = Simple()
        while self._redirections(simple) or self._is_word():
            if not self._is_word():
                continue
            word = self._word()
            if not simple.words and word.raw in _CONTROL:
                raise NotUnderstood(f"`{word.raw}` is not followed here")
            simple.words.append(word)
            self._skip()
        if self._peek() == "(":
            raise NotUnderstood("a function")
        if not simple.words and not simple.writes:
            raise NotUnderstood("a command is missing")
        return simple

    def _redirections(self, simple: Simple) -> bool:
        """Read redirections; return True if there was one."""
        self._skip()
        found = False
        while match := _REDIRECTION.match(self._text, self._at):
            sign = match[0].lstrip("0123456789")
            self._at = match.end()
            if self._text.startswith("(", self._at):
                raise NotUnderstood("a command in place of a file")
            self._skip()
            target = self._word()
            if sign in {"<<", "<<-"}:
                self._heredocs.append((target.text, sign == "<<-"))
            elif ">" in sign:
                simple.writes |= not _is_harmless(sign, target.text)
                simple.is_silent |= match[0][:1] in "1&>" and not _is_shown(target.text)
            found = True
            self._skip()
        return found

    def _is_word(self) -> bool:
        return self._at < len(self._text) and not self._peek() and self._text[self._at] != "\n"

    def _peek(self) -> str:
        return next((sign for sign in _OPERATORS if self._text.startswith(sign, self._at)), "")

    def _skip(self, *, newlines: bool = False) -> None:
        """Skip blanks and comments; a newline ends a command unless the rest may follow it."""
        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if character in " \t\r":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif character == "#" and (self._at == 0 or text[self._at - 1] in " \t\n;&|("):
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end
            elif character == "\n":
                if self._heredocs:
                    self._skip_heredocs()
                    if not newlines:
                        # The newline before the bodies ends the command.
                        self._at -= 1
                        return
                elif newlines:
                    self._at += 1
                else:
                    return
            else:
                return

    def _skip_heredocs(self) -> None:
        for delimiter, is_stripped in self._heredocs:
            while True:
                start = self._at + 1
                if start > len(self._text) or self._at >= len(self._text):
                    raise NotUnderstood("a heredoc without an end")
                end = self._text.find("\n", start)
                self._at = len(self._text) if end < 0 else end
                line = self._text[start : self._at]
                if (line.lstrip("\t") if is_stripped else line) == delimiter:
                    break
        self._heredocs = []
        self._text = f"{self._text[: self._at]}\n{self._text[self._at :]}"
        self._at += 1

    def _word(self) -> Word:
        start, pieces, is_dynamic = self._at, [], False
        bare = ""  # what is not quoted
        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if character in " \t\r\n;&|()<>":
                break
            if character == "'":
                end = self._end_of("'", self._at + 1)
                pieces.append(text[self._at + 1 : end])
                self._at = end + 1
            elif character == '"':
                is_dynamic |= self._double_quoted(pieces)
            elif character == "\\":
                pieces.append(text[self._at + 1 : self._at + 2].replace("\n", ""))
                self._at += 2
            elif character in "$`":
                is_dynamic = True
                self._substitution(pieces)
            else:
                pieces.append(character)
                bare += character
                self._at += 1
        if self._at == start:
            raise NotUnderstood("a word is missing")
        is_dynamic = is_dynamic or bool(_BRACES.search(bare))
        return Word(text[start : self._at], "".join(pieces), is_dynamic)

    def _double_quoted(self, pieces: list[str]) -> bool:
        """Read a text in double quotes; return True if the shell puts something in."""
        is_dynamic = False
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return is_dynamic
            if character == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                pieces.append(following if following in '$`"\\' else f"\\{following}")
                self._at += 2
            elif character in "$`":
                is_dynamic = True
                self._substitution(pieces)
            else:
                pieces.append(character)
                self._at += 1
        raise NotUnderstood("a quote without its end")

    def _substitution(self, pieces: list[str]) -> None:
        """Read what begins with a dollar or a backquote; it is kept as it was written."""
        start, text = self._at, self._text
        if text[start] == "`":
            self._at = self._end_of("`", start + 1) + 1
        elif text.startswith("$'", start):
            raise NotUnderstood("a quote of an unusual kind")
        elif text.startswith("${", start):
            self._at = self._end_of("}", start + 2) + 1
        elif text.startswith("$(", start):
            depth, self._at = 1, start + 2
            while depth:
                if self._at >= len(text):
                    raise NotUnderstood("a ( without its )")
                character = text[self._at]
                if character in "'\"":
                    self._at = self._end_of(character, self._at + 1)
                depth += (character == "(") - (character == ")")
                self._at += 1
        else:
            self._at += 1
        pieces.append(text[start : self._at])

    def _end_of(self, sign: str, start: int) -> int:
        end = self._text.find(sign, start)
        if end < 0:
            raise NotUnderstood("a quote without its end")
        return end


def _silence(script: Script) -> None:
    """Note that the output of a subshell is not shown."""
    for part in (part for one in script for line in one.pipelines for part in line.parts):
        if isinstance(part, list):
            _silence(part)
        else:
            part.is_silent = True


def _is_shown(target: str) -> bool:
    return target in {"1", "2", "/dev/stderr", "/dev/stdout", "/dev/tty"}


def _is_harmless(sign: str, target: str) -> bool:
    return target in {"/dev/null", "/dev/stderr", "/dev/stdout"} or (
        sign.endswith(">&") and (target.isdigit() or target == "-")
    )
