"""Fingerprints of a repository's files, from git."""

from __future__ import annotations
