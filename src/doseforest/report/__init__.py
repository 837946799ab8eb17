"""Reports on a fitted forest: overlap, summary, and every picture."""
