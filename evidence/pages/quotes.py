"""What other pages quote from the evidence: blocks between two marks, which are written anew with the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pages.results import arenas, is_run, letter, marked, methods, seeds_of, sign, table, written
from pages.sentences import in_short

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
    for path, link, shown in (
        (ROOT / "README.md", "docs/evidence/index.md", ("a", "ap")),
        (ROOT / "docs" / "choose-a-loss.md", "evidence/index.md", ("a", "ap", "b", "c")),
    ):
        text = path.read_text(encoding="utf-8")
        if not BLOCK.search(text):
            raise ValueError(f"{path}: the marks of the quoted evidence are gone; write them back.")
        fresh = quote(link, shown)
        yield path, BLOCK.sub(lambda match, fresh=fresh: match[1] + fresh + match[2], text)


def quote(link: str, shown_arenas: Sequence[str]) -> str:
    """Write a small table of the main methods for each of some arenas."""
    known = list(filter(is_run, shown_arenas))
    parts = []
    for arena in known:
        shown = [label for label in SHOWN if label in methods(arena)]
        seeds = sorted({len(seeds_of(arena)[label]) for label in shown})
        many = (
            f"{seeds[0]} to {seeds[-1]} seeds"
            if len(seeds) > 1
            else f"{seeds[0]} seed{'s' if seeds[0] > 1 else ''}"
        )
        lines = [[f"`{label}`", *_cells(arena, label)] for label in shown]
        title = f"{letter(arena)}, {arenas()[arena]['title']} ({many}): {arenas()[arena]['regime']}"
        parts += [f"{title}.", "", *table((" ", "NLL, scaled", "ECE %, scaled", "ECE %"), lines)]
    if not known:
        return f"Nothing has been run yet; [what will be]({link}).\n"
    marks = (
        "*Scaled* is after temperature scaling; numbers are means ± standard errors over seeds. A + is better and a − "
        "worse than cross-entropy in the same column, by a paired test that allows for the number of methods. No mark: "
        f"no significant difference. Marks in parentheses: one seed only. [The evidence]({link}) has all methods."
    )
    named = "; ".join(
        f"{letter(arena)}, {about['title']}" for arena, about in arenas().items() if is_run(arena)
    )
    sentences = [f"Benchmarks: {named}.", *in_short()]
    return "\n".join([*(line for sentence in sentences for line in (sentence, "")), *parts, marks, ""])


def _cells(arena: str, label: str) -> Iterator[str]:
    for calibrator, metric in (("temperature", "nll"), ("temperature", "ece"), ("identity", "ece")):
        mark = sign(arena, label, metric, calibrator=calibrator)
        yield marked(written(arena, label, calibrator, metric), mark)
