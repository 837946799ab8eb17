"""Who may ask what, and how much: keys, roles, limits."""
