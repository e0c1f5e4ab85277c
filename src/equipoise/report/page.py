"""The whole page: one file that opens without a network."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from equipoise.core.escaping import without_controls
from equipoise.report.conclusion import conclusion_of
from equipoise.report.explorer import explorer_data
from equipoise.report.formula import formula_mathml
from equipoise.report.records import Report
from equipoise.report.view import judgment_lines, sections_of, summary_of, tiles_of

__all__ = ["to_html"]

_JOINT = re.compile(r"(?<=[_/.\-])(?=[^\W\d])")


def to_html(report: Report) -> str:
    """Return a report as one self-contained HTML page.

    It opens without a network. A content security policy allows only the page's own script, so that even a mistake in
    escaping could not run text of the user.

    Args:
        report: The contents.

    Returns:
        The text of the file.

    Example:
        >>> from equipoise import Predictions
        >>> from equipoise.report import report_of
        >>> rows = Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0])
        >>> page = to_html(report_of(rows, title="<mine>"))
        >>> "<title>&lt;mine&gt;</title>" in page
        True
    """
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    conclusion = conclusion_of(report)
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            title=report.title,
            style=Markup(style),  # noqa: S704 - a file of this package
            script=Markup(script),  # noqa: S704 - a file of this package
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            summary=summary_of(report),
            conclusion=conclusion,
            judgments=judgment_lines(report, conclusion),
            compared_with=report.base.name if report.shared_calibrators else "",
            tiles=tiles_of(report),
            sections=sections_of(report),
            data=explorer_data(report),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("equipoise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters |= {"name": _breakable_name, "mathml": _formula}
    return environment


def _visible(value: Any) -> Any:
    """Return text without characters that HTML does not allow; markup stays as it is."""
    return without_controls(value) if type(value) is str else value


def _breakable_name(name: str) -> Markup:
    """Return a name that may run from right to left, and may break after its joints."""
    parts = (escape(part) for part in _JOINT.split(without_controls(name)))
    return Markup("<bdi>") + Markup("<wbr>").join(parts) + Markup("</bdi>")


def _formula(latex: str) -> Markup:
    drawn = formula_mathml(latex)
    return Markup("<code>{}</code>").format(latex) if drawn is None else Markup(drawn)  # noqa: S704 - checked MathML


def _asset(name: str) -> str:
    return files("equipoise.report").joinpath("templates", name).read_text(encoding="utf-8")
