import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_configuration_reference_and_the_json_schemas_are_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "config_reference.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_the_example_in_the_reference_has_no_mistakes():
    from notyet.config.compile import compile_text

    page = (ROOT / "docs" / "reference" / "config.md").read_text()
    example = page.split("```toml\n")[1].split("```")[0]
    settings = compile_text(example, "/p/notyet.toml")
    assert settings.mistakes == ()
    assert len(settings.gates) == 3
