"""The errors of this package, and when you meet them.

::

    EquipoiseError            anything below; catch this to catch them all
    ├── DataError             predictions or a file hold something that cannot be scored (also a ValueError)
    ├── SpecError             a name, key or parameter is not known or not allowed (also a ValueError)
    ├── SplitError            a row would be used both to fit and to judge (also a ValueError)
    ├── FileError             a file cannot be written (also an OSError)
    ├── DivergenceError       training left the finite numbers (also an ArithmeticError)
    ├── NotFittedError        a map is used before it was fitted (also a RuntimeError)
    └── MissingExtraError     an optional package is not installed (also an ImportError)

:class:`EquipoiseWarning` is for what does not stop the work: a plugin that cannot be loaded, a lock that is waited for.

Plain wrong arguments stay ``ValueError`` and ``TypeError``. Every message has one form:
*where: what was expected, what came. What to do.*
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from importlib import import_module
from types import ModuleType
from typing import Self

__all__ = [
    "DataError",
    "DivergenceError",
    "EquipoiseError",
    "EquipoiseWarning",
    "FileError",
    "MissingExtraError",
    "NotFittedError",
    "SpecError",
    "SplitError",
    "first_line",
    "located",
    "needs",
    "require",
]


class EquipoiseError(Exception):
    """The family of all errors raised on purpose by this package.

    The message is composed from its parts when it is shown. So whoever reads rows from a file can say where they are in
    that file, and the command line can name its options instead of arguments of Python.

    Args:
        message: What was expected, what came, and what to do. ``{row}`` stands for the place of a row, ``{name}`` for
            an argument of that name.
        where: The function or the file.
        row: Number of the row, counted from 0.
        line: Line of the row in a text file, which is shown instead.
        arguments: Arguments of Python that the message names, and their values as text: ``""`` for none, ``"True"`` for
            a flag, ``"[...]"`` for a list.

    Example:
        >>> error = DataError("got nan in {row}. Pass {ids}.", where="read", row=3, arguments={"ids": "'key'"})
        >>> print(error)
        read: got nan in row 3. Pass ids='key'.
        >>> print(error.at(where="a.csv", line=5).describe({"ids": "--ids"}))
        a.csv: got nan in line 5. Pass --ids 'key'.
    """

    def __init__(
        self,
        message: str = "",
        *,
        where: str = "",
        row: int | None = None,
        line: int | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.where, self.row, self.line = message, where, row, line
        self.arguments = dict(arguments or {})

    def __str__(self) -> str:
        return self.describe()

    def describe(self, options: Mapping[str, str] | None = None) -> str:
        """Return the message.

        Args:
            options: Option of the command line that sets each argument; arguments without one are named as in Python.
        """
        text = self.message
        if self.row is not None or self.line is not None:
            text = text.replace("{row}", f"row {self.row}" if self.line is None else f"line {self.line}")
        for name, value in self.arguments.items():
            text = text.replace(f"{{{name}}}", _spelled(name, value, (options or {}).get(name)))
        return f"{self.where}: {text}" if self.where else text

    def at(self, *, where: str | None = None, row: int | None = None, line: int | None = None) -> Self:
        """Return the same error at another place; what is left out stays."""
        moved = copy(self)
        moved.where = self.where if where is None else where
        moved.row, moved.line = (self.row, self.line) if row is None and line is None else (row, line)
        return moved

    def within(self, where: str) -> Self:
        """Return the same error with another place, such as a file and a key in it, in front of its own."""
        return self.at(where=f"{where}: {self.where}" if self.where else where)


def _spelled(name: str, value: str, option: str | None) -> str:
    if option is None:
        return f"{name}={value}"
    return f"{option} {'FIRST,SECOND,...' if value == '[...]' else '' if value == 'True' else value}".rstrip()


class EquipoiseWarning(UserWarning):
    """Something that does not stop the work; commands print it as one line on standard error.

    Example:
        >>> issubclass(EquipoiseWarning, UserWarning)
        True
    """


class DataError(EquipoiseError, ValueError):
    """Predictions or a file hold something that cannot be scored.

    Example:
        >>> issubclass(DataError, ValueError)
        True
    """


class SpecError(EquipoiseError, ValueError):
    """A name, key or parameter is not known, or not allowed here.

    Example:
        >>> issubclass(SpecError, ValueError)
        True
    """


class SplitError(EquipoiseError, ValueError):
    """A row would be used both to fit and to judge.

    Example:
        >>> issubclass(SplitError, ValueError)
        True
    """


class FileError(EquipoiseError, OSError):
    """A file cannot be written: the disk is full, or its folder is missing or closed.

    Example:
        >>> issubclass(FileError, OSError)
        True
    """


class DivergenceError(EquipoiseError, ArithmeticError):
    """Training left the finite numbers; the message names epoch, batch and likely cause.

    Example:
        >>> issubclass(DivergenceError, ArithmeticError)
        True
    """


class NotFittedError(EquipoiseError, RuntimeError):
    """A map is used before it was fitted.

    Example:
        >>> issubclass(NotFittedError, RuntimeError)
        True
    """


class MissingExtraError(EquipoiseError, ImportError):
    """An optional package is not installed; the message holds the command that installs it.

    Example:
        >>> issubclass(MissingExtraError, ImportError)
        True
    """


@contextmanager
def needs(package: str, *, extra: str, purpose: str) -> Iterator[None]:
    """Say in one sentence how to get an optional package, if it is missing where the block imports it.

    Args:
        package: What is imported, as in ``import package``.
        extra: The extra of this package that brings it.
        purpose: What it is needed for, as the end of "... is needed to".

    Raises:
        MissingExtraError: If it is not installed.

    Example:
        >>> with needs("a_far_away_package", extra="plots", purpose="print"):
        ...     import a_far_away_package
        Traceback (most recent call last):
        ...
        equipoise.core.errors.MissingExtraError: a_far_away_package is needed to print, and is not installed. ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtraError(
            f"{package} is needed to {purpose}, and is not installed. Run: pip install 'equipoise[{extra}]'"
        ) from error


def first_line(error: BaseException, *, most: int | None = 120) -> str:
    r"""Return the first line of what an error says; its kind if it says nothing.

    Args:
        error: Of another package, whose words go into a sentence of ours.
        most: How many characters; None takes all.

    Example:
        >>> first_line(ValueError("bad magic\nin byte 3")), first_line(MemoryError())
        ('bad magic', 'MemoryError')
    """
    lines = str(error).strip().splitlines()
    return lines[0][:most] if lines else type(error).__name__


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put a place in front of the errors that occur in the block.

    Args:
        where: A file and a key in it.

    Raises:
        SpecError: For any ``ValueError``.

    Example:
        >>> with located("run.toml.recipe"):
        ...     raise ValueError("`rate` must be above 0.")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: run.toml.recipe: `rate` must be above 0.
    """
    try:
        yield
    except ValueError as error:
        raise SpecError(f"{where}: {error}") from error


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say in one sentence how to get it.

    Args:
        module: Name to import.
        extra: The extra of this package that brings it.
        purpose: What it is needed for, as the end of "... is needed to".

    Returns:
        The imported module.

    Raises:
        MissingExtraError: If it is not installed.

    Example:
        >>> require("json", extra="plots", purpose="print").__name__
        'json'
    """
    with needs(module.split(".", maxsplit=1)[0], extra=extra, purpose=purpose):
        return import_module(module)
