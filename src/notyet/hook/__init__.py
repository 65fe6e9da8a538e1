"""`notyet hook`: what a host calls at every stop."""
