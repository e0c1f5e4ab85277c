"""Options that say how predictions are scored, the same for every command that scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from equipoise.core.choices import MOST_BINS, ScoreSettings

if TYPE_CHECKING:
    from equipoise.core.reading import Columns

__all__ = ["cluster_option", "read_along", "scoring_options", "target_options"]

F = TypeVar("F", bound=Callable[..., Any])

_MOST_RESAMPLES = 100_000
_DEFAULTS = ScoreSettings()

_OPTIONS = {
    "n_bins": click.option(
        "--bins",
        "n_bins",
        default=_DEFAULTS.n_bins,
        type=click.IntRange(1, MOST_BINS),
        show_default=True,
        help="Bins of equal width.",
    ),
    "closed": click.option(
        "--closed",
        type=click.Choice(["right", "left"]),
        default=_DEFAULTS.closed,
        show_default=True,
        help="Which side of a bin belongs to it.",
    ),
    "level": click.option(
        "--level",
        default=_DEFAULTS.level,
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        show_default=True,
        help="Level of intervals and tests.",
    ),
    "n_resamples": click.option(
        "--resamples",
        "n_resamples",
        default=_DEFAULTS.n_resamples,
        type=click.IntRange(1, _MOST_RESAMPLES),
        show_default=True,
        help="Bootstrap resamples.",
    ),
    "seed": click.option(
        "--seed",
        default=_DEFAULTS.seed,
        type=click.IntRange(min=0),
        show_default=True,
        help="Seed of the resamples.",
    ),
}
_TARGET_OPTIONS = {
    "target": click.option(
        "--target",
        type=click.Choice(["top", "positive", "classwise"]),
        help="What is judged: the confidence of the predicted class, the probability of the positive class of two, or "
        "the probability of every class. By default the predicted class; both of the first if two classes have clearly "
        "unequal frequencies.",
    ),
    "positive": click.option(
        "--positive",
        metavar="CLASS",
        help="The positive class, by name or number; by default class 1. Implies --target positive.",
    ),
}


#: For commands that read rows.
cluster_option = click.option(
    "--cluster",
    metavar="NAME",
    help="Column of clusters of rows that depend on each other, such as the image of a pixel or the author of a post: "
    "intervals and tests resample clusters, not rows.",
)


def read_along(columns: Columns, by: Sequence[str], cluster: str | None) -> Columns:
    """Return what to read from files: columns of groups, and that of clusters with them."""
    named = (*by, *([cluster] if cluster is not None and cluster not in by else []))
    if not named:
        return columns
    return columns | {"groups": named}


def scoring_options(function: F) -> F:
    """Add the options of scoring; the command gets them as one argument ``settings``."""

    @wraps(function)
    def command(*args: Any, **options: Any) -> Any:
        settings = ScoreSettings(**{name: options.pop(name) for name in _OPTIONS})._asdict()
        return function(*args, settings=settings, **options)

    described: Any = command
    for option in reversed(_OPTIONS.values()):
        described = option(described)
    result: F = described
    return result


def target_options(function: F) -> F:
    """Add ``--target`` and ``--positive`` below the options of scoring, whose ``settings`` get them."""

    @wraps(function)
    def command(*args: Any, settings: dict[str, Any], **options: Any) -> Any:
        chosen = {name: options.pop(name) for name in _TARGET_OPTIONS}
        return function(*args, settings=settings | chosen, **options)

    described: Any = command
    for option in reversed(_TARGET_OPTIONS.values()):
        described = option(described)
    result: F = described
    return result
