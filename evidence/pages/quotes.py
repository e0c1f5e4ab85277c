"""What other pages quote from the evidence: blocks between two marks, which are written anew with the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pages import second
from pages.results import benchmarks, is_run, letter, marked, methods, seeds_of, sign, table, written
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
        (ROOT / "README.md", "\n".join(advice("docs/evidence/index.md")) + "\n"),
        (ROOT / "docs" / "choose-a-loss.md", quote("evidence/index.md", ("a", "ap", "b", "c"))),
        (ROOT / "docs" / "choose-a-calibrator.md", second.advisor()),
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
        seeds = sorted({len(seeds_of(benchmark)[label]) for label in shown})
        many = (
            f"{seeds[0]} to {seeds[-1]} seeds"
            if len(seeds) > 1
            else f"{seeds[0]} seed{'s' if seeds[0] > 1 else ''}"
        )
        lines = [[f"`{label}`", *_cells(benchmark, label)] for label in shown]
        title = f"{letter(benchmark)}, {benchmarks()[benchmark]['title']} ({many}): {benchmarks()[benchmark]['regime']}"
        parts += [f"{title}.", "", *table((" ", "NLL, scaled", "ECE %, scaled", "ECE %"), lines)]
    if not known:
        return f"Nothing has been run yet; [what will be]({link}).\n"
    marks = (
        "*Scaled* is after temperature scaling; numbers are means ± standard errors over seeds. A + is better and a − "
        "worse than cross-entropy in the same column, by a paired test that allows for the number of methods. No mark: "
        f"no significant difference. Marks in parentheses: one seed only. [The evidence]({link}) has all methods."
    )
    named = "; ".join(
        f"{letter(benchmark)}, {about['title']}"
        for benchmark, about in benchmarks().items()
        if is_run(benchmark)
    )
    sentences = [*advice(link), f"Benchmarks: {named}."]
    return "\n".join(
        [*(line for sentence in sentences for line in (sentence, "")), *second.summary(), *parts, marks, ""]
    )


def _cells(benchmark: str, label: str) -> Iterator[str]:
    for calibrator, metric in (("temperature", "nll"), ("temperature", "ece"), ("identity", "ece")):
        mark = sign(benchmark, label, metric, calibrator=calibrator)
        yield marked(written(benchmark, label, calibrator, metric), mark)
