"""What tests of workspaces need besides a project on the box."""

import pytest


@pytest.fixture
def here(tmp_path):
    """A folder on this machine."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder
