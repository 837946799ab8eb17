"""A look inside a finished forest: importance, and trees as text."""
