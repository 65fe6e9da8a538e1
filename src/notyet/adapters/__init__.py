"""Ways into notyet for programs that have their own agents; one small file each."""
