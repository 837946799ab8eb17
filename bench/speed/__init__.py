"""Speed beside peers that are measured in the same run, one script each."""
