"""Groups of methods of a fitted object that are written on higher floors: ``forest.plot.…``."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast, overload

from doseforest.base.late import late

A_co = TypeVar("A_co", covariant=True)


class Accessor(Generic[A_co]):
    """An attribute under which a class of a higher floor answers for the object that it is on.

    Asked for on a fitted object it is that class, made with the object; asked for on the object's
    class it is the class itself, so that its documentation is at hand. The class is imported when
    it is first asked for.

    Parameters
    ----------
    place : str
        Module and name of the class, with a colon between; see `doseforest.base.late`.

    Examples
    --------
    >>> class Work:
    ...     bar = Accessor("doseforest.base.progress:ProgressBar")
    >>> Work.bar.__name__
    'ProgressBar'
    """

    def __init__(self, place: str) -> None:
        self.place = place

    @overload
    def __get__(self, owner: None, kind: type) -> type[A_co]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> A_co: ...

    def __get__(self, owner: object | None, kind: type) -> A_co | type[A_co]:
        made = late(self.place)
        return cast("type[A_co]", made) if owner is None else cast(A_co, made(owner))

    def __set__(self, owner: object, value: Any) -> None:
        name = self.place.rpartition(":")[2]
        raise AttributeError(f"This attribute is a {name} and cannot be set. Got {value!r}.")
