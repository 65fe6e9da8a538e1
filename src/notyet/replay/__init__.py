"""Recorded stops against another configuration."""
