"""The failures that a check named, and which of them are new: for `new_failures_only`.

`text` reads what a test runner or linter printed, `reports` what it wrote for machines, `compare`
subtracts the failures of the session's start, `commands` refuses commands whose output would hide
failures. Wherever it cannot be told which failures are new, the answer says so, and nothing is
guessed: to release an agent that broke something is worse than to block it once too often.
"""
