"""The pricing system: market, experiments, pipeline, service and command line."""
