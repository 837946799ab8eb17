"""What each stage of the pipeline does: one file, one function `run` to metrics."""
