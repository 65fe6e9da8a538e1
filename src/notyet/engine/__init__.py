"""Deciding stops: the public `Engine`, and the one way that a stop takes."""
