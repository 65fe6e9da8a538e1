"""What the files of an agent look like: here, and on other machines."""
