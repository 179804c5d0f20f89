"""What is derived from a problem, derived once: kept with the problem, gone with it or when it is forgotten."""

import functools
from collections.abc import Callable
from typing import TypeVar

Problem = TypeVar("Problem")
Derived = TypeVar("Derived")


def memoized_on_problem(derive: Callable[[Problem], Derived]) -> Callable[[Problem], Derived]:
    """Call a function once per object, which must not change; the result is read-only for all callers.

    It lies among the object's attributes, as a cached property would: ``dataclasses.replace`` leaves it behind.
    """

    name = f"{derive.__module__}.{derive.__qualname__}"  # with a point, so that no attribute is called so

    @functools.wraps(derive)
    def memoized(problem: Problem) -> Derived:
        attributes = vars(problem)
        if name not in attributes:
            attributes[name] = derive(problem)
        found: Derived = attributes[name]
        return found

    return memoized


def forget_derived(problem: object) -> None:
    """Drop all that was derived from a problem, to free memory; it is derived again when it is next asked for."""
    attributes = vars(problem)
    for name in [name for name in attributes if "." in name]:  # names of derived values have a point
        del attributes[name]
