"""The HTTP interface, one file for each group of resources."""
