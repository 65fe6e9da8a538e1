"""The pure part: what a stop is, which gates it meets, and what their answers come to.

Nothing here does I/O, reads a clock or the environment, or imports anything heavy.
"""
