"""Configuration: files are read with positions, checked against one schema, and compiled."""
