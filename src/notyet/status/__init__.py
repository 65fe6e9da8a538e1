"""`notyet status`: whether agents are checked here, by which gates and hosts, and what is wrong."""
