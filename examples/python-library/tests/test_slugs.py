from slugs import slug


def test_words_are_joined_by_hyphens():
    assert slug("Hello World") == "hello-world"


def test_white_space_does_not_matter():
    assert slug("  Hello\tWorld ") == "hello-world"


def test_accents_are_removed():  # fails since before the agent came: nobody is sent back for it
    assert slug("Café") == "cafe"
