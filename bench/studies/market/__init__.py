"""What models of discounts are worth in the marketplace, against the policy of its exact curves."""
