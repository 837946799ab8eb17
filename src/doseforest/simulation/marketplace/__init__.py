"""A ride-hailing marketplace with exact counterfactuals."""
