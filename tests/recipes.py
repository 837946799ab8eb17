"""Corrections with the fields of a test, as far as they have them."""

from dataclasses import fields, replace

from doseforest.corrections import CORRECTIONS


def recipe(correction, *, leaves=None, **own):
    """The correction of a name; `leaves` are sizes where it takes several, the first elsewhere."""
    found = CORRECTIONS[correction]
    names = {field.name for field in fields(found)}
    if leaves is not None:
        own |= {"leaf_sizes": leaves, "leaf_size": leaves[0]}
    return replace(found, **{name: value for name, value in own.items() if name in names})
