"""How pictures look: colours that everyone can tell apart, thin frames, no change of global settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from equipoise.core.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "COLOURS",
    "DASHES",
    "GREY",
    "INK",
    "MARKERS",
    "RED",
    "check_not_empty",
    "dress",
    "new_figure",
    "on_axes",
    "own_settings",
]

#: Okabe and Ito (2008): eight colours that colour-blind readers can tell apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#b59f00", "#000000")
#: One per colour, so that print in grey can be read too.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: For lines, to the same end.
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.2, 1.5, 1.2)))
BLUE, RED, GREY, INK = "#0072b2", "#d55e00", "#8c959f", "#24292f"

T = TypeVar("T")


def new_figure(
    n_rows: int = 1,
    n_columns: int = 1,
    *,
    size: tuple[float, float],
    heights: tuple[float, ...] | None = None,
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its grid of axes; imports the plotting library."""
    pyplot = require("matplotlib.pyplot", extra="plots", purpose="draw")
    figure, grid = pyplot.subplots(
        n_rows, n_columns, figsize=size, height_ratios=heights, squeeze=False, layout="constrained"
    )
    return figure, [list(row) for row in grid]


@contextmanager
def own_settings() -> Iterator[None]:
    """Draw and save under the plotting library's own defaults, whatever settings files there are.

    The library reads a ``matplotlibrc`` from the current folder first, when it is imported: one that a stranger left
    there would change figures, or break the import. Functions of Python draw under the settings of their caller.
    """
    with _no_settings_files() if "matplotlib" not in sys.modules else nullcontext():
        matplotlib = require("matplotlib", extra="plots", purpose="draw")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.use("agg")
        yield


@contextmanager
def _no_settings_files() -> Iterator[None]:
    """Let the library be imported in a folder without settings, and with an empty file in place of the user's."""
    before = os.environ.get("MATPLOTLIBRC")
    os.environ["MATPLOTLIBRC"] = os.devnull
    try:
        with chdir(Path(__file__).parent) if Path("matplotlibrc").exists() else nullcontext():
            yield
    finally:
        del os.environ["MATPLOTLIBRC"]
        if before is not None:
            os.environ["MATPLOTLIBRC"] = before


def on_axes(ax: Axes | None, *, size: tuple[float, float] = (4.5, 3.4)) -> Axes:
    """Return the axes given, or those of a new figure."""
    return new_figure(size=size)[1][0][0] if ax is None else ax


def dress(ax: Axes, *, x: str, y: str, title: str | None = None, grid: bool = True) -> Axes:
    """Name the axes and take off what nobody reads."""
    ax.set_xlabel(x, color=INK)
    ax.set_ylabel(y, color=INK)
    if title:
        ax.set_title(title, loc="left", fontsize="medium", fontweight="bold", color=INK)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor=INK)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis="y", color="#d0d7de", linewidth=0.6)
    return ax


def check_not_empty(records: Mapping[str, T], *, where: str) -> None:
    """Raise if there is nothing to draw."""
    if not records:
        raise ValueError(f"{where}: nothing to draw, got an empty mapping. Pass {{'name': record}}.")
