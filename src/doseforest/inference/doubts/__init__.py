"""How far answers can be trusted: unmeasured confounding, refuters."""
