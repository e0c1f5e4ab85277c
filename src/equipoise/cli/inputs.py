"""Options that name the columns of a file, and files that are read by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from equipoise.core.sources import SourceLike
from equipoise.core.splits import SPLITS

__all__ = ["Columns", "column_options", "one_or_several"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Columns:
    """What the user said about the columns of a file; ready to be passed on to a reader.

    Attributes:
        logits: Name, names with commas between, or a pattern.
        probs: The same.
        labels: Name of the column of true classes.
        predicted: Name of the column of predicted classes.
        confidence: Name of the column of their probabilities.
        weights: Name of the column of sample weights.
        ids: Name of the column that identifies rows.
        split: Which split the rows are from.
        ignore_index: The label of rows to leave out.
    """

    logits: str | None
    probs: str | None
    labels: str | None
    predicted: str | None
    confidence: str | None
    weights: str | None
    ids: str | None
    split: str | None
    ignore_index: int | None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``read_predictions`` and ``iter_predictions``."""
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return named | {"logits": _columns(self.logits), "probs": _columns(self.probs)}


def column_options(function: F) -> F:
    """Add the options that name columns; the command gets them as one argument ``columns``."""

    @wraps(function)
    def command(*args: Any, **options: Any) -> Any:
        columns = Columns(**{name: options.pop(name) for name in Columns.__dataclass_fields__})
        return function(*args, columns=columns, **options)

    described: Any = command
    for option in reversed(_OPTIONS):
        described = option(described)
    result: F = described
    return result


_OPTIONS = (
    click.option(
        "--logits", metavar="NAME", help="Column or array of logits; or a pattern such as 'score_*'."
    ),
    click.option(
        "--probs", metavar="NAME", help="Column or array of probabilities; or a pattern such as 'p_*'."
    ),
    click.option("--labels", metavar="NAME", help="Column of true classes."),
    click.option("--predicted", metavar="NAME", help="Column of predicted classes (top-1 files)."),
    click.option("--confidence", metavar="NAME", help="Column of their probabilities (top-1 files)."),
    click.option("--weights", metavar="NAME", help="Column of sample weights."),
    click.option("--ids", metavar="NAME", help="Column that identifies rows across files."),
    click.option("--split", type=click.Choice(SPLITS), help="Which split the rows are from."),
    click.option("--ignore-index", type=int, metavar="LABEL", help="Leave out rows with this label."),
)


def one_or_several(files: Sequence[str]) -> SourceLike:
    """Return a single file by itself, several as a list."""
    return files[0] if len(files) == 1 else list(files)


def _columns(text: str | None) -> str | list[str] | None:
    return [name.strip() for name in text.split(",")] if text and "," in text else text
