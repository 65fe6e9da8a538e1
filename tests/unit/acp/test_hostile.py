"""`notyet acp` between a client and an agent that break the protocol, or go at a bad time."""

from notyet.acp.marks import Marks


def test_a_mark_of_another_proxy_stays(tmp_path):
    marks = Marks(str(tmp_path))
    marks.add("s1", "s1")
    (file,) = (tmp_path / "acp").iterdir()
    file.write_text("1\ns1")  # as another proxy writes it that has loaded the session
    marks.remove()
    assert file.exists()
