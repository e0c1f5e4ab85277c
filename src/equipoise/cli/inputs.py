"""Options that say what a file holds, the same for every command that reads predictions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from equipoise.core.errors import EquipoiseError
from equipoise.core.escaping import without_secrets
from equipoise.core.reading import Columns
from equipoise.core.splits import SPLITS

if TYPE_CHECKING:
    from equipoise.core.reading.files import SourceLike

__all__ = [
    "COLUMN_OPTIONS",
    "OPTION_OF",
    "column_options",
    "given_words",
    "naming_ids",
    "one_or_several",
    "refuse_given",
]

F = TypeVar("F", bound=Callable[..., Any])

#: The option that stands for each argument of a reader; groups are an option of commands that look at them.
OPTION_OF: Mapping[str, str] = {
    name: "--by" if name == "groups" else f"--{name.replace('_', '-')}" for name in Columns.__annotations__
}


class _Names(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "NAME"

    def __init__(self, *, always_several: bool = False) -> None:
        self._always_several = always_several

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return one name as it is, several, with commas between them, as a list."""
        if not isinstance(value, str) or not (self._always_several or "," in value):
            return value
        return [name.strip() for name in value.split(",")]


class _Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a number of bytes: ``4GB``, ``500MB`` or plain."""
        found = re.fullmatch(r"(\d{1,18})\s*([kMGT]?)B?", str(value).strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} must be a size such as 4GB or 500MB.", param, ctx)
        return int(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " ")


_OPTIONS: dict[str, dict[str, Any]] = {
    "logits": {
        "type": _Names(),
        "help": "Column or array of logits; or names with commas between; or a pattern such as 'score_*'.",
    },
    "probs": {
        "type": _Names(),
        "help": "Column or array of probabilities; or names with commas between; or a pattern such as 'p_*'.",
    },
    "labels": {"metavar": "NAME", "help": "Column of true classes."},
    "predicted": {"metavar": "NAME", "help": "Column of predicted classes (top-1 files)."},
    "confidence": {
        "metavar": "NAME",
        "help": "Column of their probabilities (top-1 files), or of probabilities of being right.",
    },
    "correct": {
        "metavar": "NAME",
        "help": "Column that is true or false, 1 or 0: whether the prediction was right; with --confidence alone.",
    },
    "weights": {"metavar": "NAME", "help": "Column of sample weights."},
    "ids": {
        "metavar": "NAME",
        "help": "Column that identifies rows across files; an id that occurs twice is an error.",
    },
    "class_names": {
        "type": _Names(always_several=True),
        "metavar": "NAMES",
        "help": "Names of the classes in order, with commas between.",
    },
    "n_classes": {"type": click.IntRange(min=1), "help": "Number of classes (top-1 files)."},
    "split": {"type": click.Choice(SPLITS), "help": "Which split the rows are from."},
    "ignore_index": {"type": int, "metavar": "LABEL", "help": "Leave out rows with this label."},
    "first_label": {
        "type": click.Choice(["-1", "0", "1"]),
        "help": "Number of the first class among numeric labels: 1 for labels 1 to k, -1 for labels -1 and 1. "
        "By default what is certain, otherwise 0.",
    },
    "drop_missing": {
        "is_flag": True,
        "help": "Leave out rows with a missing value in a column that is read, and report how many.",
    },
    "normalize": {
        "is_flag": True,
        "help": "Divide rows of probabilities by their sums where rounding explains the difference from one.",
    },
    "percent": {"is_flag": True, "help": "Probabilities or confidences are percentages, from 0 to 100."},
    "max_bytes": {
        "type": _Size(),
        "help": "How large a file may become in memory, such as 4GB; by default 256 MiB, or 200 times its size.",
    },
}


#: The options that describe a file.
COLUMN_OPTIONS = tuple(_OPTIONS)


def given_words(*names: str) -> list[str]:
    """Return the options of these parameters as they were given on the command line, to be given again."""
    context = click.get_current_context()
    words = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in names or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if getattr(parameter, "is_flag", False):
            words.append(parameter.opts[0])
            continue
        for one in value if isinstance(value, tuple) else (value,):
            text = ",".join(one) if isinstance(one, list) else without_secrets(str(one))
            words += [parameter.opts[0], text]
    return words


def refuse_given(names: Iterable[str], reason: str) -> None:
    """Raise if an option of one of these parameters was given on the command line, where it would be ignored.

    Args:
        names: Parameters of the command.
        reason: What follows the option in the message, with a remedy.

    Raises:
        UsageError: With the option.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in names and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} {reason}")


def column_options(function: F, *, names: Mapping[str, str] = OPTION_OF) -> F:
    """Add the options that describe a file; the command gets them as one argument ``columns``.

    Args:
        function: The command.
        names: The option of every argument, for commands that use one of the names for something else.
    """

    @wraps(function)
    def command(*args: Any, **options: Any) -> Any:
        columns = {name: options.pop(name) for name in _OPTIONS}
        given = {name: value for name, value in columns.items() if value is not None and value is not False}
        if "first_label" in given:
            given["first_label"] = int(given["first_label"])
        try:
            return function(*args, columns=cast("Columns", given), **options)
        except EquipoiseError as error:
            if names is not OPTION_OF:  # the program spells arguments by their usual options
                error.message, error.where, error.arguments = error.describe(names), "", {}
            raise

    described: Any = command
    for name, facts in reversed(_OPTIONS.items()):
        text = facts["help"].replace("--confidence", names["confidence"])
        described = click.option(names[name], name, **{**facts, "help": text})(described)
    result: F = described
    return result


@contextmanager
def naming_ids(files: Sequence[SourceLike], columns: Columns) -> Iterator[None]:
    """Add the ids themselves to the error that files of rows to be paired have other ids."""
    from equipoise.core.predictions.combine import UnmatchedIdsError
    from equipoise.core.reading.conversion import find_ids

    try:
        yield
    except UnmatchedIdsError as error:
        hashes = {*error.missing.tolist(), *error.extra.tolist()}
        found = sorted({text for file in files for text in find_ids(file, columns, hashes)})
        shown = ", ".join(repr(text[:60]) for text in found[:3])
        if shown:
            error.message += f" Such ids are {shown}."
        raise


def one_or_several(files: Sequence[str | Path]) -> SourceLike:
    """Return a single file by itself, several as a list."""
    return files[0] if len(files) == 1 else list(files)
