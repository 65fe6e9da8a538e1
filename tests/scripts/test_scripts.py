"""Every story of the command line goes as it is told; and the teller notices when it does not."""

from pathlib import Path

import pytest

import stories

STORIES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_the_story_goes_as_it_is_told(path, tmp_path, request):
    fleet = ""
    if path.read_text().startswith(stories.ON_POSTGRESQL):
        fleet = request.getfixturevalue("cluster").url(schema=path.stem)
    stories.check(path, tmp_path, fleet)


@pytest.fixture
def tell(tmp_path, monkeypatch):
    """Tell a story that stands in the test; return it as it is afterwards."""
    monkeypatch.delenv(stories.WRITE, raising=False)

    def tell(text):
        path = tmp_path / "a.txt"
        path.write_text(text)
        folder = tmp_path / "world"
        folder.mkdir()
        stories.check(path, folder)
        return path.read_text()

    return tell


def test_one_shell_runs_all_commands(tell):
    tell(
        "It goes somewhere.\n\n  $ mkdir sub && cd sub && x=5\n  $ pwd; echo $x\n"
        "  $PROJECT/sub\n  5\n  $ cat <<'EOF'\n  > one\n  >\n  >  two\n  > EOF\n  one\n  \n   two\n"
    )


def test_codes_patterns_and_ends_of_lines_count(tell):
    tell(
        "  $ echo a 12 b; exit_with() { return $1; }; exit_with 3\n  a ?? * (glob)\n  [3]\n"
        "  $ echo 12.5 >&2\n  [0-9]+\\.5 (re)\n  $ printf x\n  x (no-eol)\n"
        "  $ printf '\\n\\n'\n  \n  \n"
        "  $ echo '[1]'\n  [1] (printed)\n  $ echo '[2]'; false\n  [?] * (glob)\n  [1]\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "  $ echo a\n  b\n",
        "  $ echo a\n",
        "  $ echo a\n  a\n  b\n",
        "  $ false\n",
        "  $ true\n  [1]\n",
        "  $ echo '[1]'\n  [1]\n",
        "  $ false\n  * (glob)\n",
        "  $ echo '[1]'; false\n  [1]\n  [1]\n",
        "  $ echo ab\n  a (glob)\n",
        "  $ echo ab\n  a (re)\n",
        "  $ printf a\n  a\n",
        "  $ exit 0\n",
        "Nothing is run.\n",
    ],
)
def test_a_story_that_goes_otherwise_fails(tell, text):
    with pytest.raises(AssertionError):
        tell(text)


def test_output_of_no_command_is_a_mistake(tell):
    with pytest.raises(ValueError, match="line 1"):
        tell("  lost\n")


def test_a_story_can_be_written_anew_and_keeps_what_still_fits(tell, monkeypatch):
    monkeypatch.setenv(stories.WRITE, "write")
    text = "Prose.\n\n  $ echo old 5 s; echo new; false\n  old ? s (glob)\n  gone\n  [2]\n\nMore.\n"
    assert tell(text) == text.replace("  gone\n  [2]", "  new\n  [1]")


def test_what_is_written_anew_keeps_its_commands(tell, monkeypatch):
    monkeypatch.setenv(stories.WRITE, "write")
    text = "  $ cat <<'END'\n  > a  \n  >\n  >   \n  > END\n"
    assert tell(text) == text + "  a  \n  \n    \n"


def test_nothing_of_the_user_is_in_a_story(tell):
    tell(
        "  $ echo $HOME $PATH ${NO_COLOR-unset} ${TERM-unset}\n  $HOME $BIN unset dumb\n"
        "  $ git status --short\n  $ [ -t 1 ]\n  [1]\n"
    )
