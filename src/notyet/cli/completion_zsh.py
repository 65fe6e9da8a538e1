"""The script for zsh, in the words of its `_arguments`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.cli.completion_words import Completed, Option, Value

_HEAD = """\
#compdef notyet
# zsh completion for notyet; made by: notyet completion zsh
_notyet_asked() {
  local -a found
  found=("${(@f)$(command notyet completion --values $1 2>/dev/null)}")
  compadd -a found
}
_notyet() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \\
    '(- *)'{-h,--help}'[show all commands, with examples]' \\
    '(- *)--version[show the version]' \\
    '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      local -a commands=(
"""
_MIDDLE = """\
      )
      _describe -t commands command commands ;;
    argument)
      case $words[1] in
"""
_TAIL = """\
      esac ;;
  esac
}
if [[ $funcstack[1] == _notyet ]]; then
  _notyet "$@"
else
  compdef _notyet notyet
fi
"""


def script(commands: Sequence[Completed]) -> str:
    """Return the script."""
    lines = [f"        {_quoted(f'{one.name}:{_colons(one.summary)}')}" for one in commands]
    lines.append(_MIDDLE.rstrip("\n"))
    for command in commands:
        specs = [
            *(spec for option in command.options for spec in _option(option)),
            *_places(command),
        ]
        lines.append(f"        {command.name}) _arguments \\")
        lines.append(" \\\n".join(f"          {spec}" for spec in specs) + " ;;")
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _option(option: Option) -> Iterator[str]:
    others = f"({' '.join(option.flags)})" if len(option.flags) > 1 else ""
    for flag in option.flags:
        sign = "=" if option.value is not None and flag.startswith("--") else ""
        value = _value(option.value) if option.value is not None else ""
        yield _quoted(f"{others}{flag}{sign}[{_brackets(option.help)}]{value}")


def _places(command: Completed) -> Iterator[str]:
    for number, value in enumerate(command.places, 1):
        is_last = number == len(command.places) and command.repeats
        yield _quoted(("*" if is_last else f"{number}:") + _value(value)[0 if is_last else 1 :])


def _value(value: Value) -> str:
    """Return how a value is completed, with a colon before its name."""
    if value.words:
        action = f"({' '.join(value.words)})"
    elif value.kind == "files":
        action = "_files"
    elif value.kind == "folders":
        action = "_files -/"
    else:
        # With a space before it, it is called as it stands.
        action = f" _notyet_asked {value.kind}" if value.kind else " "
    return f":{_colons(value.name)}:{action}"


def _colons(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _brackets(text: str) -> str:
    return _colons(text).replace("[", "\\[").replace("]", "\\]")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
