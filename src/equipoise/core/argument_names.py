"""How messages call an argument: as Python passes it, or as the command line does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["argument", "arguments_as_options"]

_OPTIONS: ContextVar[Mapping[str, str] | None] = ContextVar("options", default=None)


def argument(name: str, value: str = "") -> str:
    """Return an argument as the caller would write it, for a message.

    Args:
        name: Name of the argument in Python.
        value: Its value in Python; ``"[...]"`` for a list, ``"True"`` for a flag.

    Example:
        >>> argument("logits", "'score'"), argument("ids")
        ("logits='score'", 'ids=')
        >>> with arguments_as_options({"logits": "--logits"}):
        ...     argument("logits", "'score'")
        "--logits 'score'"
    """
    option = (_OPTIONS.get() or {}).get(name)
    if option is None:
        return f"{name}={value}"
    shown = {"[...]": "FIRST,SECOND,...", "True": ""}.get(value, value)
    return f"{option} {shown}".rstrip()


@contextmanager
def arguments_as_options(options: Mapping[str, str]) -> Iterator[None]:
    """Let messages of the code inside name command-line options instead of arguments.

    Args:
        options: The option that sets each argument.

    Example:
        >>> with arguments_as_options({"ids": "--ids"}):
        ...     argument("ids")
        '--ids'
    """
    token = _OPTIONS.set(options)
    try:
        yield
    finally:
        _OPTIONS.reset(token)
