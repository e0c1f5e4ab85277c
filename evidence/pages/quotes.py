"""What other pages quote from the evidence: blocks between two marks, which are written anew with the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pages.results import (
    benchmarks,
    is_run,
    letter,
    marked,
    methods,
    seeds_of,
    seeds_text,
    sign,
    table,
    written,
)
from pages.second.quotes import advisor, progress, summary
from pages.sentences import advice

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(<!-- evidence -->\n).*?(<!-- end of evidence -->)", re.DOTALL)
SHOWN = (
    "ce",
    "label_smoothing",
    "focal",
    "dual_focal",
    "mbls",
    "cals_alm",
    "focal+mdca",
    "deep_ensemble(n_members=3)",
)


def quoting_pages() -> Iterator[tuple[Path, str]]:
    """Give the pages that quote, with fresh quotes."""
    for path, fresh in (
        (ROOT / "README.md", "\n".join([*_points("docs/evidence"), ""])),
        (ROOT / "docs" / "choose-a-loss.md", quote("evidence", ("a", "ap", "b", "c"))),
        (ROOT / "docs" / "choose-a-calibrator.md", advisor()),
        (ROOT / "evidence" / "README.md", progress()),
    ):
        text = path.read_text(encoding="utf-8")
        if not BLOCK.search(text):
            raise ValueError(f"{path}: the marks of the quoted evidence are gone; write them back.")
        yield path, BLOCK.sub(lambda match, fresh=fresh: match[1] + fresh + match[2], text)


def quote(link: str, shown_benchmarks: Sequence[str]) -> str:
    """Write a small table of the main methods for each of some benchmarks."""
    known = list(filter(is_run, shown_benchmarks))
    parts = []
    for benchmark in known:
        shown = [label for label in SHOWN if label in methods(benchmark)]
        many = seeds_text(*(len(seeds_of(benchmark)[label]) for label in shown))
        lines = [[f"`{label}`", *_cells(benchmark, label)] for label in shown]
        title = f"{letter(benchmark)}, {benchmarks()[benchmark]['title']} ({many}): {benchmarks()[benchmark]['regime']}"
        parts += [f"{title}.", "", *table((" ", "NLL, scaled", "ECE %, scaled", "ECE %"), lines)]
    if not known:
        return f"Nothing has been run yet; [what will be]({link}/index.md).\n"
    marks = (
        "*Scaled* is after temperature scaling; numbers are means ± standard errors over seeds. A + is better and a − "
        "worse than cross-entropy in the same column, by a paired test that allows for the number of methods. No mark: "
        "no significant difference. Marks in parentheses: one seed only. "
        f"[The evidence]({link}/index.md) has all methods."
    )
    named = "; ".join(
        f"{letter(benchmark)}, {about['title']}"
        for benchmark, about in benchmarks().items()
        if is_run(benchmark)
    )
    first = f"First edition, methods at the settings of their papers. Benchmarks: {named}."
    return "\n".join([*_points(link), "", *summary(), first, "", *parts, marks, ""])


def _points(link: str) -> list[str]:
    *points, links = advice(link)
    return [*points, "", links]


def _cells(benchmark: str, label: str) -> Iterator[str]:
    for calibrator, metric in (("temperature", "nll"), ("temperature", "ece"), ("identity", "ece")):
        mark = sign(benchmark, label, metric, calibrator=calibrator)
        yield marked(written(benchmark, label, calibrator, metric), mark)
