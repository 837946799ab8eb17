"""What everything stands on: array types, threads, progress, whole files, intervals."""
