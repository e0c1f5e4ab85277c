"""A frame with axes, drawn as inline SVG whose colours the page's style decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.report.markup import Markup, join, tag

__all__ = ["Frame", "nice_ticks", "picture", "text"]


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
    return [round(place * step, 12) for place in range(first, last + 1)]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A rectangle of the picture with a scale on each side.

    Attributes:
        left: Distance from the picture's left edge.
        top: Distance from its top.
        width: Width in units of the picture.
        height: Height in the same.
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
        """Return where a value stands from the left."""
        low, high = self.across
        return round(self.left + self.width * (value - low) / (high - low), 2)

    def y(self, value: float) -> float:
        """Return where a value stands from the top."""
        low, high = self.up
        return round(self.top + self.height * (1 - (value - low) / (high - low)), 2)

    @property
    def bottom(self) -> float:
        """Where the horizontal axis stands."""
        return self.top + self.height

    def box(self, x0: float, y0: float, x1: float, y1: float, *, class_: str) -> Markup:
        """Return the rectangle between two points of the scales."""
        left, right = sorted((self.x(x0), self.x(x1)))
        top, bottom = sorted((self.y(y0), self.y(y1)))
        return tag(
            "rect", x=left, y=top, width=round(right - left, 2), height=round(bottom - top, 2), class_=class_
        )

    def line(self, x0: float, y0: float, x1: float, y1: float, *, class_: str) -> Markup:
        """Return a straight line between two points of the scales."""
        return tag("line", x1=self.x(x0), y1=self.y(y0), x2=self.x(x1), y2=self.y(y1), class_=class_)

    def path(self, xs: Sequence[float], ys: Sequence[float], *, class_: str) -> Markup:
        """Return a line through points; it breaks where a value is not a number."""
        words, pen = [], "M"
        for x, y in zip(xs, ys, strict=True):
            if not (math.isfinite(x) and math.isfinite(y)):
                pen = "M"
                continue
            words.append(f"{pen}{self.x(x):g} {self.y(y):g}")
            pen = "L"
        return tag("path", d="".join(words), class_=class_)

    def axes(
        self,
        *,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_label: str = "",
        y_label: str = "",
    ) -> Markup:
        """Return grid lines, numbers and names of the axes."""
        low, high = self.across
        parts: list[Markup] = []
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
            parts.append(
                tag(
                    "text",
                    y_label,
                    transform=f"translate(11 {middle}) rotate(-90)",
                    text_anchor="middle",
                    class_="label",
                )
            )
        return join(*parts)


def text(x: float, y: float, words: str, *, anchor: str = "start", class_: str = "tick") -> Markup:
    """Return words at a place."""
    return tag("text", words, x=round(x, 1), y=round(y, 1), text_anchor=anchor, class_=class_)


def picture(
    *parts: Markup, width: float, height: float, label: str, class_: str, steps: bool = False
) -> Markup:
    """Return the whole picture; ``label`` is what a screen reader says.

    Args:
        parts: What is in it.
        width: Width in its own units; the page scales it.
        height: Height in the same.
        label: A sentence that stands for the picture.
        class_: For the page's style.
        steps: True if arrow keys walk through its marks.
    """
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=label,
        class_=class_,
        tabindex="0" if steps else None,
        data_steps=steps,
    )
