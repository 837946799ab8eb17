"""Outcome models: the spline core, boosted trees, their stack, and how a file holds them."""

from doseforest.nuisance.outcome.outcome_members import (
    OUTCOME_MEMBERS,
    MemberModel,
    MemberRecipe,
    OutcomeMember,
    StoredModel,
)

__all__ = ["OUTCOME_MEMBERS", "MemberModel", "MemberRecipe", "OutcomeMember", "StoredModel"]
