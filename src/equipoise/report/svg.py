"""Charts as data: shapes with attributes in a frame with axes, which a template writes as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from equipoise.core.escaping import without_controls

__all__ = ["Chart", "Frame", "SvgElement", "nice_ticks", "svg_element", "text"]


@dataclass(frozen=True)
class SvgElement:
    """An element of a chart.

    Attributes:
        tag: The name of the SVG element.
        attributes: Its attributes; those that are None are left out.
        children: Elements in it.
        text: Text in it.
    """

    tag: str
    attributes: Mapping[str, object]
    children: tuple[SvgElement, ...] = ()
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A whole chart.

    Attributes:
        shapes: What is drawn.
        width: Width in units of the chart; the page scales it.
        height: Height in the same units.
        label: A sentence for screen readers.
        kind: The class for the page's style.
        steps: Whether arrow keys step through its marks.
        legend: Samples with the names of series, below the chart.
    """

    shapes: tuple[SvgElement, ...]
    width: float
    height: float
    label: str
    kind: str
    steps: bool = False
    legend: tuple[tuple[SvgElement, str], ...] = ()


def svg_element(tag: str, *children: SvgElement, text: str = "", **attributes: object) -> SvgElement:
    """Return an element; underscores in names of attributes become hyphens, one at the end is dropped.

    Example:
        >>> svg_element("line", x1=1, class_="axis", data_tip="a").attributes
        {'x1': 1, 'class': 'axis', 'data-tip': 'a'}
    """
    named = {
        name.removesuffix("_").replace("_", "-"): without_controls(value) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None
    }
    return SvgElement(tag, named, children, text)


def nice_ticks(low: float, high: float, *, about: int = 5) -> list[float]:
    """Return round numbers that cover a range.

    Example:
        >>> nice_ticks(0.0, 1.0)
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        >>> nice_ticks(3.0, 3.0)
        [2.4, 2.6, 2.8, 3.0, 3.2, 3.4, 3.6]
    """
    if high <= low:
        low, high = low - 0.5, low + 0.5
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A rectangle of the chart with a scale on each side.

    Attributes:
        left: Distance from the left edge of the chart.
        top: Distance from its top.
        width: Width in units of the chart.
        height: Height in the same units.
        across: Ends of the horizontal scale.
        up: Ends of the vertical scale.
    """

    left: float
    top: float
    width: float
    height: float
    across: tuple[float, float] = (0.0, 1.0)
    up: tuple[float, float] = (0.0, 1.0)

    def x(self, value: float) -> float:
        """Return the horizontal position of a value."""
        low, high = self.across
        return round(self.left + self.width * (value - low) / (high - low), 2)

    def y(self, value: float) -> float:
        """Return the vertical position of a value."""
        low, high = self.up
        return round(self.top + self.height * (1 - (value - low) / (high - low)), 2)

    @property
    def bottom(self) -> float:
        """The position of the horizontal axis."""
        return self.top + self.height

    def box(self, x0: float, y0: float, x1: float, y1: float, *, class_: str) -> SvgElement:
        """Return the rectangle between two points of the scales."""
        left, right = sorted((self.x(x0), self.x(x1)))
        top, bottom = sorted((self.y(y0), self.y(y1)))
        return svg_element(
            "rect", x=left, y=top, width=round(right - left, 2), height=round(bottom - top, 2), class_=class_
        )

    def line(self, x0: float, y0: float, x1: float, y1: float, *, class_: str) -> SvgElement:
        """Return a straight line between two points of the scales."""
        return svg_element("line", x1=self.x(x0), y1=self.y(y0), x2=self.x(x1), y2=self.y(y1), class_=class_)

    def path(
        self, xs: Sequence[float], ys: Sequence[float], *, class_: str, closed: bool = False
    ) -> SvgElement:
        """Return a line through points; it breaks where a value is not a number."""
        words, pen = [], "M"
        for x, y in zip(xs, ys, strict=True):
            if not (math.isfinite(x) and math.isfinite(y)):
                pen = "M"
                continue
            words.append(f"{pen}{self.x(x):g} {self.y(y):g}")
            pen = "L"
        return svg_element("path", d="".join(words) + ("Z" if closed and words else ""), class_=class_)

    def axes(
        self,
        *,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_label: str = "",
        y_label: str = "",
    ) -> list[SvgElement]:
        """Return grid lines, numbers and names of the axes."""
        low, high = self.across
        parts: list[SvgElement] = []
        for value in y_ticks:
            parts.append(self.line(low, value, high, value, class_="grid"))
            parts.append(text(self.left - 6, self.y(value) + 3.5, f"{value:g}", anchor="end"))
        parts += [text(self.x(value), self.bottom + 14, f"{value:g}", anchor="middle") for value in x_ticks]
        parts.append(self.line(low, self.up[0], high, self.up[0], class_="axis"))
        if x_label:
            parts.append(
                text(self.left + self.width / 2, self.bottom + 30, x_label, anchor="middle", class_="label")
            )
        if y_label:
            middle = round(self.top + self.height / 2, 1)
            turn = f"translate(11 {middle}) rotate(-90)"
            parts.append(
                svg_element("text", text=y_label, transform=turn, text_anchor="middle", class_="label")
            )
        return parts


def text(x: float, y: float, words: str, *, anchor: str = "start", class_: str = "tick") -> SvgElement:
    """Return words at a position."""
    return svg_element("text", text=words, x=round(x, 1), y=round(y, 1), text_anchor=anchor, class_=class_)
