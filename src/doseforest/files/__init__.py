"""Models and policies as files: one container, a reader for each kind."""
