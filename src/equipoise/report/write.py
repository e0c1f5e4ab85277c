"""A report as a file: HTML or Markdown by its ending, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from equipoise.core.atomic_files import write_text
from equipoise.core.names import look_up
from equipoise.report.from_predictions import Reportable, report_of
from equipoise.report.markdown import to_markdown
from equipoise.report.page import to_html
from equipoise.report.records import Report

__all__ = ["ENDINGS", "write_report"]

_FORMS = {".html": to_html, ".htm": to_html, ".md": to_markdown}
#: What a report's file may end in.
ENDINGS = tuple(_FORMS)


def write_report(
    report: Report | Reportable | Mapping[str, Reportable], path: str | os.PathLike[str]
) -> Path:
    """Write a report.

    Args:
        report: The contents; or the argument of :func:`report_of`: predictions, chunks of them, an audit, or
            several by name.
        path: Where; the ending decides the form: ``.html`` or ``.md``.

    Returns:
        The path.

    Raises:
        SpecError: If the ending is neither.

    Example:
        >>> import tempfile
        >>> from equipoise import Predictions
        >>> rows = Predictions(probs=[0.9, 0.8, 0.3], labels=[1, 0, 0])
        >>> write_report(rows, Path(tempfile.mkdtemp()) / "report.html").name
        'report.html'
    """
    target = Path(path)
    form = look_up(
        target.suffix.lower(), _FORMS, what="form of a report", hint="use a path that ends in .html or .md."
    )
    whole = report if isinstance(report, Report) else report_of(report)
    write_text(target, form(whole))
    return target
