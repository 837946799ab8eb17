"""The same forest on a cluster."""
