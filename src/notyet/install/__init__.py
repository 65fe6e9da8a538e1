"""`notyet install`: the line that hosts run, the launcher behind it, the settings of hosts."""
