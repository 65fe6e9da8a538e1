"""What every scenario ends with must see what is left behind, whatever it is."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from clients.model import anthropic
from clients.world import World
from commands import until


class Nobody(World):
    """A world in which no program runs."""

    ITS_FILES = ("own-*", "spilled/*")


@pytest.fixture
def world(tmp_path):
    return Nobody(Path("/bin/true"), "1", tmp_path)


def listen(path):
    folder = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(folder)


@pytest.mark.parametrize("leave", [Path.mkdir, Path.touch, os.mkfifo, listen])
def test_anything_in_the_folder_for_scratch_files_is_seen(world, leave):
    leave(world.tmp / "left")
    assert world.left_behind() == ["left"]


def test_what_is_the_programs_own_may_stay_with_the_folders_it_is_in(world):
    for folder in ("own-0/x", "spilled/y"):
        (world.tmp / folder).mkdir(parents=True)
    assert world.left_behind() == []
    (world.tmp / "spilled" / "y").rmdir()
    assert world.left_behind() == ["spilled"]


def test_a_process_is_seen_and_ended_with_the_scenario(world):
    process = subprocess.Popen(["sleep", "1000"], env=world.environ)
    assert until(lambda: world.left_behind() == ["sleep 1000 "])
    with pytest.raises(KeyError), world.scenario():
        raise KeyError
    assert process.wait(20) == -9


def test_words_of_two_hooks_in_one_reminder_are_told_apart():
    said = "Stop hook additional context: "
    told = f"<system-reminder>\n{said}one\n\nand more\n\n{said}two\n</system-reminder>\n"
    assert anthropic.prompts([told]) == ["one\n\nand more", "two"]
