"""The script for fish."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.cli.completion_words import Completed, Option, Value

_HEAD = """\
# fish completion for notyet; made by: notyet completion fish
function __notyet_place # how many words stand after the command, and no options
    set -l words (commandline -opc)
    set -l place 0
    set -l takes (string split ' ' -- $argv[3])
    test (count $words) -ge 2; and test $words[2] = $argv[1]; or return 1
    set -l skip 0
    for word in $words[3..]
        if test $skip = 1
            set skip 0
        else if contains -- $word $takes
            set skip 1
        else if not string match -q -- '-*' $word
            set place (math $place + 1)
        end
    end
    test $skip = 0; or return 1
    if test "$argv[4]" = last
        test $place -ge $argv[2]
    else
        test $place -eq $argv[2]
    end
end
function __notyet_is # the command
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end
complete -c notyet -f
complete -c notyet -n 'test (count (commandline -opc)) -eq 1' -s h -l help -d 'show all commands'
complete -c notyet -n 'test (count (commandline -opc)) -eq 1' -l version -d 'show the version'
"""
_FIRST = "test (count (commandline -opc)) -eq 1"


def script(commands: Sequence[Completed]) -> str:
    """Return the script."""
    lines = [
        f"complete -c notyet -n {_quoted(_FIRST)} -a {one.name} -d {_quoted(one.summary)}"
        for one in commands
    ]
    for command in commands:
        lines += [_option(command, option) for option in command.options]
        lines += _places(command)
    return _HEAD + "\n".join(lines) + "\n"


def _option(command: Completed, option: Option) -> str:
    flags = [
        f"-l {flag.removeprefix('--')}" if flag.startswith("--") else f"-s {flag.removeprefix('-')}"
        for flag in option.flags
    ]
    value = f" -r{_values(option.value)}" if option.value is not None else ""
    when = f"-n {_quoted(f'__notyet_is {command.name}')}"
    return f"complete -c notyet {when} {' '.join(flags)}{value} -d {_quoted(option.help)}"


def _places(command: Completed) -> Iterator[str]:
    takes = " ".join(f for option in command.options if option.value for f in option.flags)
    for number, value in enumerate(command.places):
        given = _values(value)
        if given:
            is_last = command.repeats and number == len(command.places) - 1
            last = " last" if is_last else ""
            when = f"__notyet_place {command.name} {number} {_quoted(takes)}{last}"
            yield f"complete -c notyet -n {_quoted(when)}{given}"


def _values(value: Value) -> str:
    """Return the options that say how a value is completed."""
    if value.words:
        return f" -f -a {_quoted(' '.join(value.words))}"
    if value.kind == "files":
        return " -F"
    if value.kind == "folders":
        return " -f -a '(__fish_complete_directories)'"
    if value.kind:
        return f" -f -a '(command notyet completion --values {value.kind} 2>/dev/null)'"
    return ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
