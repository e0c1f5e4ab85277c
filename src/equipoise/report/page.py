"""The whole page: one file, no network, nothing of the user's runs."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from equipoise.report.markup import Markup, clean, join, tag
from equipoise.report.records import Report
from equipoise.report.sections import sections_of, verdict_section

__all__ = ["to_html"]


def to_html(report: Report) -> str:
    """Return a report as one self-contained HTML page.

    It opens without a network. A content security policy lets only the page's own script run, so that even a
    mistake in escaping could not run what a class name says.

    Args:
        report: What to tell.

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
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="equipoise"),
        tag("title", report.title),
        Markup('<link rel="icon" href="data:,">'),
        Markup(f"<style>{style}</style>"),
    )
    body = tag(
        "body",
        *_body(report),
        tag("div", id="tip", role="status", hidden=True),
        Markup(f"<script>{script}</script>"),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _body(report: Report) -> list[Markup]:
    kept = sections_of(report)
    links = [tag("li", tag("a", heading, href=f"#{anchor}")) for anchor, heading, _ in kept]
    sections = [
        tag(
            "section",
            tag("h2", heading, id=f"{anchor}-title"),
            content,
            id=anchor,
            aria_labelledby=f"{anchor}-title",
        )
        for anchor, heading, content in kept
    ]
    return [
        tag("header", tag("h1", clean(report.title)), tag("p", _about(report), class_="about")),
        tag(
            "main",
            verdict_section(report),
            tag("nav", tag("ul", *links), aria_label="On this page"),
            *sections,
        ),
        tag("footer", "Made by equipoise. This file holds everything it shows."),
    ]


def _about(report: Report) -> Markup:
    card = report.base.first
    facts = [f"{card.n_samples:,} rows"]
    if card.n_classes:
        facts.append(f"{card.n_classes} classes")
    if card.split:
        facts.append(f"split {card.split}")
    if report.trend is not None:
        facts[0] = f"{report.trend.card.n_samples:,} rows"
        facts.insert(
            0, f"{len(report.methods)} states, {report.methods[0].name} to {report.methods[-1].name}"
        )
    elif len(report.methods) > 1:
        facts.insert(0, f"{len(report.methods)} methods")
    elif len(report.base.runs) > 1:
        facts.insert(0, f"mean of {len(report.base.runs)} runs")
    return join(" · ".join(facts))


def _asset(name: str) -> str:
    return files("equipoise").joinpath("report", "assets", name).read_text(encoding="utf-8")
