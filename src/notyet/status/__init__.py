"""What `notyet status` tells: how a place is gated, by which hosts, and what is wrong with that."""

from __future__ import annotations
