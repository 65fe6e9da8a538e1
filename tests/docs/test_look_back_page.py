"""The page about looking back says what is so."""

import json
import re
from pathlib import Path

from notyet import Allow, Engine, Ledger, Report
from notyet.cli.main import main
from notyet.config.compile import compile_text
from notyet.ledger.prune import Retention
from notyet.ledger.stats import MOST_COUNTED
from support import gate, stop

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "look-back.md").read_text()


def test_the_limits_on_the_page_are_those_that_are_in_force():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    settings = compile_text(text, "/notyet.toml")
    assert settings.mistakes == ()
    assert Retention(**settings.ledger) == Retention()
    assert f"{MOST_COUNTED:,}" in PAGE


def test_every_key_of_a_line_of_json_is_on_the_page(capsys):
    Engine([gate("g", Allow())], ledger=Ledger()).check_sync(stop())
    capsys.readouterr()
    assert main(["log", "1", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    (report,) = known["reports"]
    for key in (*known, *report):
        assert f"`{key}`" in PAGE, key


def test_every_word_for_how_a_report_ended_is_on_the_page():
    spared = [Report(gate="g", answer=Allow(), spared=why) for why in ("passed", "unchanged")]
    for status in ("allowed", "blocked", "halted", "problem", "not_asked"):
        assert f"`{status}`" in PAGE
    for report in spared:
        assert f"`{report.status}`" in PAGE


def test_every_command_on_the_page_parses():
    from notyet.cli.main import parsed

    found = re.findall(r"`(notyet log[^`]*)`", PAGE) + re.findall(
        r"^\$ (notyet.*)$", PAGE, re.MULTILINE
    )
    assert len(found) > 8
    for line in found:
        words = [word.replace("ID", "1") for word in line.split()[1:]]
        assert parsed(words).command == "log"
