"""How names leave: they work on for two minor versions, and say what to use instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

__all__ = ["answer_old_names", "deprecated", "warn_deprecated"]

P = ParamSpec("P")
R = TypeVar("R")


def warn_deprecated(what: str, *, instead: str, since: str, until: str, stacklevel: int = 2) -> None:
    """Warn that something will go. A test fails once ``until`` is reached and it is still there.

    Args:
        what: What was used, as its user knows it: a name, an argument, a key of a file.
        instead: What to use.
        since: The version that warned first.
        until: The version in which it is gone.
        stacklevel: Whose line is shown: 2 is the caller of the function that calls this.

    Example:
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn_deprecated("`objective`", instead="`method`", since="0.2.0", until="0.4.0")
        >>> print(caught[0].message)
        `objective` goes in version 0.4.0 (deprecated since 0.2.0). Use `method`.
    """
    message = f"{what} goes in version {until} (deprecated since {since}). Use {instead}."
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


def deprecated(*, instead: str, since: str, until: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function warn when it is called; it works as before.

    Args:
        instead: What to use.
        since: The version that warned first.
        until: The version in which it is gone.

    Returns:
        The decorator.

    Example:
        >>> @deprecated(instead="new()", since="0.2.0", until="0.4.0")
        ... def old():
        ...     return 1
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     old()
        1
        >>> print(caught[0].message)
        old() goes in version 0.4.0 (deprecated since 0.2.0). Use new().
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            warn_deprecated(f"{function.__name__}()", instead=instead, since=since, until=until)
            return function(*args, **kwargs)

        return warned

    return decorate


def answer_old_names(package: str, gone: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a module that answers names which are gone with what to write instead.

    Args:
        package: Its ``__name__``.
        gone: Each name, and what it is now.

    Returns:
        A function that raises ``AttributeError``, for any other name in Python's own words.

    Example:
        >>> answer = answer_old_names("equipoise.losses", {"LogitNormLoss": "LogitPenaltyLoss"})
        >>> answer("LogitNormLoss")
        Traceback (most recent call last):
        AttributeError: equipoise.losses.LogitNormLoss is now LogitPenaltyLoss.
    """

    def answer(name: str) -> NoReturn:
        if name in gone:
            raise AttributeError(f"{package}.{name} is now {gone[name]}.")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return answer
