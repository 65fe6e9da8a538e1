"""The containers of a fleet: what can be checked without running them."""

import re
from pathlib import Path

import pytest
import yaml

from notyet.cli.main import parsed

FLEET = Path(__file__).parents[2] / "examples" / "fleet"
TEXT = (FLEET / "compose.yaml").read_text()
SERVICES = yaml.safe_load(TEXT)["services"]
OURS = [name for name in SERVICES if name != "database"]


def test_there_are_a_database_two_workers_and_a_page():
    assert {"database", "worker-1", "worker-2", "page"} <= set(SERVICES)
    assert "Untried" in TEXT.splitlines()[0]


@pytest.mark.parametrize("name", OURS)
def test_the_command_of_each_service_is_one_of_ours(name):
    parsed(SERVICES[name]["command"])


@pytest.mark.parametrize("name", OURS)
def test_each_service_is_built_from_files_that_exist(name):
    build = SERVICES[name]["build"]
    context = (FLEET / build["context"]).resolve()
    assert (context / "pyproject.toml").is_file()
    assert (context / build["dockerfile"]).is_file()


def test_each_service_waits_for_one_that_exists_and_workers_have_folders_of_their_own():
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
    mounted = [SERVICES[name]["volumes"] for name in ("worker-1", "worker-2")]
    assert mounted[0] != mounted[1]
    named = {volume.partition(":")[0] for each in mounted for volume in each}
    assert named <= set(yaml.safe_load(TEXT)["volumes"])


def test_no_password_and_no_folder_of_a_machine_is_in_the_file():
    assert not re.search(r"PASSWORD: (?!\$)", TEXT)
    assert not re.search(r"- [./~]", TEXT)


def test_the_image_has_the_extras_of_a_fleet_and_its_page():
    assert "[fleet,page]" in (FLEET / "Dockerfile").read_text()
