"""The style of figures: colors that everyone can distinguish, thin frames, no change of global settings."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from equipoise.core.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "COLORS",
    "DASHES",
    "GRAY",
    "INK",
    "MARKERS",
    "RED",
    "add_caption",
    "band_opacity",
    "check_not_empty",
    "dress",
    "legend_width",
    "lone_marker",
    "new_figure",
    "on_axes",
    "outside_legend",
    "own_settings",
    "panels",
    "series_styles",
    "share_legend",
    "wrapped",
]

#: Okabe and Ito (2008): eight colors that color-blind readers can distinguish.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#b59f00", "#000000")
#: One per color, so that print in gray can be read too.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: For lines, to the same end.
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.2, 1.5, 1.2)))
BLUE, RED, GRAY, INK = "#0072b2", "#d55e00", "#8c959f", "#24292f"

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

    The library reads a ``matplotlibrc`` from the current folder first, when it is imported: one that somebody else left
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
    """Let the library be imported in a folder without settings, and with an empty file instead of the user's."""
    before = os.environ.get("MATPLOTLIBRC")
    os.environ["MATPLOTLIBRC"] = os.devnull
    try:
        with chdir(Path(__file__).parent) if Path("matplotlibrc").exists() else nullcontext():
            yield
    finally:
        del os.environ["MATPLOTLIBRC"]
        if before is not None:
            os.environ["MATPLOTLIBRC"] = before


def on_axes(ax: Axes | None, *, size: tuple[float, float] = (4.5, 3.4), names: Collection[str] = ()) -> Axes:
    """Return the axes given, or those of a new figure, wide enough for a legend of these names next to them."""
    width, height = size
    if ax is not None:
        return ax
    wide = width + (legend_width(names) if names else 0.0)
    return new_figure(size=(wide, max(height, 0.6 + 0.2 * len(names))))[1][0][0]


def legend_width(names: Collection[str]) -> float:
    """Return how many inches a legend of these names takes next to the axes."""
    return 0.6 + 0.065 * max(map(len, names), default=0)


def outside_legend(ax: Axes, *, title: str | None = None) -> None:
    """Put the legend to the right of the axes, where it hides no data."""
    ax.legend(
        frameon=False,
        fontsize="small",
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.2,
        title=title,
        title_fontsize="small",
        alignment="left",
    )


def share_legend(axes: Sequence[Axes]) -> None:
    """Give panels one legend on the right of the figure instead of one each."""
    found: dict[str, Any] = {}
    for ax in axes:
        found |= {name: handle for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
    figure: Any = axes[0].figure
    figure.set_figwidth(figure.get_figwidth() + legend_width(found))
    figure.legend(found.values(), found, frameon=False, fontsize="small", loc="outside right upper")


def panels(
    n_panels: int, *, size: tuple[float, float], heights: tuple[float, ...] = (1.0,), most: int = 4
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure of panels that wrap into rows of equal length.

    Args:
        n_panels: How many.
        size: Width and height of a panel.
        heights: Shares of the axes that a panel has below each other.
        most: Panels in a row.

    Returns:
        The figure, and the axes of each panel from top to bottom.
    """
    n_rows = -(-n_panels // most)
    n_columns = -(-n_panels // n_rows)
    figure, grid = new_figure(
        n_rows * len(heights),
        n_columns,
        size=(size[0] * n_columns, size[1] * n_rows),
        heights=heights * n_rows,
    )
    found = [
        [grid[row * len(heights) + part][column] for part in range(len(heights))]
        for row in range(n_rows)
        for column in range(n_columns)
    ]
    for spare in found[n_panels:]:
        for ax in spare:
            ax.remove()
    return figure, found[:n_panels]


def series_styles() -> Iterator[tuple[str, str, Any]]:
    """Return color, marker and dash of one series after the other; none is repeated before all pairs are used up."""
    for number in count():
        turn = number // len(COLORS)
        yield (
            COLORS[number % len(COLORS)],
            MARKERS[(number + turn) % len(MARKERS)],
            DASHES[(number + turn) % len(DASHES)],
        )


def wrapped(text: str, width: int = 34) -> str:
    """Return a title in lines that are no wider than its panel; its own line breaks stay."""
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, width)]
    return "\n".join(lines) or text


def lone_marker(n_points: int) -> str | None:
    """Return the marker of a line: a line of one point is not visible without."""
    return "o" if n_points == 1 else None


def band_opacity(n_bands: int) -> float:
    """Return how opaque bands are drawn, so that many of them leave the lines visible."""
    return min(0.15, 0.6 / n_bands)


def add_caption(figure: Figure, sentences: Sequence[str]) -> None:
    """Write sentences below a figure."""
    if sentences:
        letters = max(40, int(figure.get_figwidth() * 17))
        text = "\n".join(textwrap.fill(sentence, letters) for sentence in sentences)
        figure.set_figheight(figure.get_figheight() + 0.18 * (text.count("\n") + 1))
        figure.supxlabel(text.replace("$", r"\$"), x=0.01, ha="left", fontsize="x-small", color=INK)


def dress(ax: Axes, *, x: str, y: str, title: str | None = None, grid: bool = True) -> Axes:
    """Name the axes and hide frames; epochs are whole numbers."""
    ax.set_xlabel(x, color=INK)
    ax.set_ylabel(y, color=INK)
    if title:
        ax.set_title(title, loc="left", fontsize="medium", fontweight="bold", color=INK)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GRAY)
    ax.tick_params(color=GRAY, labelcolor=INK)
    ax.set_axisbelow(True)
    if x == "epoch":
        ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    if grid:
        ax.grid(axis="y", color="#d0d7de", linewidth=0.6)
    return ax


def check_not_empty(records: Mapping[str, T], *, where: str) -> None:
    """Raise if there is nothing to draw."""
    if not records:
        raise ValueError(f"{where}: nothing to draw, got an empty mapping. Pass {{'name': record}}.")
