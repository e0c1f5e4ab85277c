"""Figures of evidence, as SVG text that is the same on every machine."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pages.results import entrants, interval, mean, rows

from equipoise.evaluate import Score, ShiftScores
from equipoise.metrics.facts import metric_facts
from equipoise.plots import draw_shift
from equipoise.plots.style import BLUE, GRAY, INK, RED, dress, legend_width

#: Text stays text and ids do not change, so that one loss gives one file on every machine.
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "equipoise",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
#: Shown in figures with few lines.
SHOWN = ("focal", "dual_focal", "label_smoothing", "cals_alm", "deep_ensemble(n_members=3)")
#: Points to the right of a mean that its line is shown at most.
WILD = 4.0


def dots(benchmark: str) -> str:
    """Draw the ECE of every method before and after temperature scaling, with 95% intervals."""
    labels = sorted(entrants(benchmark), key=lambda one: -mean(benchmark, one, "identity", "ece"))
    figure = Figure(figsize=(7.2, 0.21 * len(labels) + 1.1))
    figure.subplots_adjust(left=0.42, right=0.97, bottom=0.7 / (0.21 * len(labels) + 1.1), top=0.99)
    ax = figure.add_subplot()
    right = 0.0
    for calibrator, color, shift, name in (
        ("identity", RED, 0.12, "before"),
        ("temperature", BLUE, -0.12, "after temperature scaling"),
    ):
        found = 100 * np.array([interval(benchmark, label, calibrator, "ece") for label in labels])
        up = np.arange(len(labels)) + shift
        ax.hlines(up, found[:, 1], found[:, 2], color=color, linewidth=1)
        ax.plot(found[:, 0], up, "o", color=color, markersize=4, label=name)
        # A method that differs wildly from seed to seed would compress all others: its line leaves the figure.
        right = max(right, float(np.minimum(found[:, 2], found[:, 0] + WILD).max()))
    ax.axvline(100 * mean(benchmark, "ce", "identity", "ece"), color=GRAY, linewidth=0.8, linestyle="--")
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.set_ylim(-0.8, len(labels) - 0.2)
    ax.set_xlim(0, 1.03 * right)
    ax.legend(frameon=False, loc="upper right")
    dress(ax, x="ECE %; dashed: cross-entropy before scaling", y="", grid=False)
    return _text(figure)


def undominated(benchmark: str, labels: Sequence[str]) -> list[str]:
    """Name the methods that no other of these beats in accuracy and in NLL after temperature scaling at once."""
    places = {label: _place(benchmark, label) for label in labels}
    return [
        label
        for label, (nll, accuracy) in places.items()
        if not any(
            other <= nll and high >= accuracy and (other, high) != (nll, accuracy)
            for other, high in places.values()
        )
    ]


def _place(benchmark: str, label: str) -> tuple[float, float]:
    return mean(benchmark, label, "temperature", "nll"), mean(benchmark, label, "identity", "accuracy")


class _Box(NamedTuple):
    """Where a name or a dot is, as a share of what all dots span."""

    left: float
    right: float
    low: float
    high: float

    @classmethod
    def beside(cls, x: float, y: float, name: str, aligned: str) -> _Box:
        """Return the space that a name takes beside its dot, to the right of it if it is aligned left."""
        near, width = 0.01, 0.012 * len(name)
        left = x + near if aligned == "left" else x - near - width
        return cls(left, left + width, y - 0.014, y + 0.014)

    def touches(self, other: _Box) -> bool:
        """Whether one would cover some of the other."""
        apart = self.right < other.left or other.right < self.left
        return not (apart or self.high < other.low or other.high < self.low)


def front(benchmark: str) -> str:
    """Draw NLL after temperature scaling against accuracy; the best corner is above on the left. Names need space."""
    figure = Figure(figsize=(7.2, 4.6))
    figure.subplots_adjust(left=0.1, right=0.97, bottom=0.12, top=0.98)
    ax = figure.add_subplot()
    best = undominated(benchmark, entrants(benchmark))
    places = {label: _place(benchmark, label) for label in entrants(benchmark)}
    # A method that is far off would press all others into a corner; the axis names it.
    far = [label for label, (nll, _) in places.items() if nll > 1.3 * places["ce"][0]]
    shown = [place for label, place in places.items() if label not in far]
    spread = [max(axis) - min(axis) or 1.0 for axis in zip(*shown, strict=True)]
    dots = {one: (places[one][0] / spread[0], places[one][1] / spread[1]) for one in places if one not in far}
    written: list[_Box] = []
    edge = min(x for x, _ in dots.values()) - 0.1
    for label in sorted(dots, key=lambda one: (one not in best, one != "ce")):
        nll, accuracy = places[label]
        color = RED if label in best else INK if label == "ce" else BLUE
        ax.plot(nll, 100 * accuracy, "o", color=color, markersize=4, zorder=2 if color == BLUE else 3)
        others = [_Box(x, x, y, y) for one, (x, y) in dots.items() if one != label]
        # Above or below a dot a name could be another's, so only those that must have one are written there.
        heights = (0.0, 0.04, -0.04) if label in (*best, "ce") else (0.0,)
        for up, side in product(heights, ("left", "right")):
            box = _Box.beside(dots[label][0], dots[label][1] + up, label, side)
            if box.left > edge and not any(map(box.touches, [*written, *others])):
                written.append(box)
                ax.annotate(
                    label,
                    (nll, 100 * accuracy),
                    xytext=(4 if side == "left" else -4, 230 * up - 2),
                    textcoords="offset points",
                    ha=side,
                    fontsize=6.5,
                    color=INK,
                )
                break
    ax.margins(0.12)
    beyond = f"; far to the right: {', '.join(far)}" if far else ""
    dress(ax, x=f"NLL after temperature scaling{beyond}", y="accuracy %; red: not dominated")
    return _text(figure)


def shift_lines(benchmark: str, family: str) -> str:
    """Draw the ECE of some methods against severity, and of cross-entropy with temperature scaling."""
    lines = [
        ("ce", "identity"),
        ("ce", "temperature"),
        *((label, "identity") for label in SHOWN if label in entrants(benchmark)),
    ]
    splits = dict.fromkeys(row["split"] for row in rows(f"{benchmark}/scores.csv"))
    levels = {0: "test", **{int(name[-1]): name for name in splits if name.startswith(f"test-{family}_")}}
    found = []
    for label, calibrator in lines:
        curve = {
            level: {"ece": Score(*interval(benchmark, label, calibrator, "ece", split))}
            for level, split in levels.items()
        }
        found.append(ShiftScores(label, calibrator, {family: curve}, {}))
    width = 6.2 + legend_width([one.name for one in found])
    figure = Figure(figsize=(width, 3.6))
    figure.subplots_adjust(left=0.62 / width, right=6.0 / width, bottom=0.14, top=0.92)
    ax: Axes = figure.add_subplot()
    draw_shift(found, family=family, ax=ax)
    ax.set_ylabel(metric_facts("ece").head)
    return _text(figure)


#: A name, its difference with both ends, and a second such difference or None.
Row = tuple[str, Sequence[float], Sequence[float] | None]


def margins(panels: Mapping[str, Sequence[Row]], margin: float) -> str:
    """Draw differences from cross-entropy with intervals, one panel per benchmark; the margin is shaded.

    Args:
        panels: Rows by title, the lowest first; second differences are drawn with open circles.
        margin: Half of the width of the band.
    """
    n_columns = min(2, len(panels))
    n_rows = -(-len(panels) // n_columns)
    height = 0.25 * max(map(len, panels.values())) + 0.9
    figure = Figure(figsize=(4.4 * n_columns, height * n_rows))
    for number, (title, found) in enumerate(panels.items()):
        ax = figure.add_subplot(n_rows, n_columns, number + 1)
        ax.axvspan(-margin, margin, color=GRAY, alpha=0.2, linewidth=0)
        ax.axvline(0, color=GRAY, linewidth=0.8)
        for up, (_, *both) in zip(-np.arange(len(found)), found, strict=True):
            for ends, shift, is_open in zip(both, (0.12, -0.25), (False, True), strict=True):
                if ends is not None:
                    middle, low, high = ends
                    color = BLUE if high < 0 else RED if low > 0 else INK
                    face = "white" if is_open else color
                    ax.hlines(up + shift, low, high, color=color, linewidth=1)
                    ax.scatter(middle, up + shift, color=color, facecolor=face, s=14, zorder=3)
        ax.set_yticks(-np.arange(len(found)), [name for name, *_ in found], fontsize=7)
        ax.set_title(title, fontsize=9)
        dress(ax, x="difference in NLL, % of cross-entropy", y="", grid=False)
    figure.tight_layout()
    return _text(figure)


def _text(figure: Figure) -> str:
    stream = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in stream.getvalue().decode().splitlines()) + "\n"
