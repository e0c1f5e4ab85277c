"""Scores and curves as one self-contained HTML file, Markdown, or a model card."""

from equipoise.report.advisor import advice_of, remedies_of
from equipoise.report.from_predictions import method_of_audit, report_of
from equipoise.report.markdown import to_markdown
from equipoise.report.model_card import model_card_metadata, to_model_card
from equipoise.report.page import to_html
from equipoise.report.records import (
    Advice,
    AfterCalibrator,
    MethodCard,
    MethodResult,
    Option,
    Provenance,
    Report,
    RunResult,
)
from equipoise.report.write import write_report

__all__ = [
    "Advice",
    "AfterCalibrator",
    "MethodCard",
    "MethodResult",
    "Option",
    "Provenance",
    "Report",
    "RunResult",
    "advice_of",
    "method_of_audit",
    "model_card_metadata",
    "remedies_of",
    "report_of",
    "to_html",
    "to_markdown",
    "to_model_card",
    "write_report",
]
