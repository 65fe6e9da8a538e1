"""What is in a basket."""


def total(prices: list[int]) -> int:
    """Return what all of it costs."""
    return sum(prices)
