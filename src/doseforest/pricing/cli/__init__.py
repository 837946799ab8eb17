"""The command line: `doseforest --help`."""
