"""Adapters for the Python frameworks that people build agents with; one file each.

An adapter is imported only if it is used, and needs only its framework.
"""
