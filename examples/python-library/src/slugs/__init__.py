"""Names for web addresses."""


def slug(title: str) -> str:
    """Return a title as a name: lower case, with hyphens between words."""
    return "-".join(title.lower().split())
