import os

import pytest

from notyet.config.find import MOST_BYTES
from notyet.config.readers import read_file


def test_the_text_of_a_file_is_returned_as_it_is(tmp_path):
    path = tmp_path / "notyet.toml"
    path.write_bytes("é\r\n".encode())
    assert read_file(str(path)) == ("é\r\n", None)


def test_a_file_that_is_not_there_a_folder_a_pipe_and_a_device_are_one_mistake_each(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    said = {}
    for path in (tmp_path / "none", tmp_path, tmp_path / "pipe", "/dev/null", "a\0b"):
        text, mistake = read_file(str(path))
        assert text is None
        assert mistake.file == str(path)
        said[path] = mistake.message
    assert list(said.values()) == [
        "cannot be read: No such file or directory",
        "is a folder, not a file",
        "is not a regular file",
        "is not a regular file",
        "cannot be read: no file can have this name",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_one_mistake(tmp_path):
    path = tmp_path / "secret"
    path.touch(mode=0)
    assert "Permission denied" in read_file(str(path))[1].message


def test_a_link_in_circles_is_one_mistake(tmp_path):
    (tmp_path / "a").symlink_to("a")
    assert "cannot be read" in read_file(str(tmp_path / "a"))[1].message


def test_a_file_over_four_megabytes_is_not_read(tmp_path):
    path = tmp_path / "big"
    path.write_bytes(b"#" * MOST_BYTES)
    assert read_file(str(path))[1] is None
    path.write_bytes(b"#" * (MOST_BYTES + 1))
    text, mistake = read_file(str(path))
    assert text is None
    assert "larger than 4 MB" in mistake.message


def test_bytes_that_are_not_utf8_are_named_with_their_place(tmp_path):
    path = tmp_path / "latin"
    path.write_bytes("é = 1\né".encode() + b"\xe9")
    assert str(read_file(str(path))[1]) == f"{path}:2:2: is not UTF-8: byte 0xe9 (save it as UTF-8)"


def test_utf16_is_called_by_its_name(tmp_path):
    path = tmp_path / "wide"
    path.write_bytes("a = 1".encode("utf-16"))
    assert str(read_file(str(path))[1]) == f"{path}: is UTF-16 text (save it as UTF-8)"
