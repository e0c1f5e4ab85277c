"""The claims of papers beside what was found: each holds, ties or fails, or was not run yet."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from evidence_data import FOLDER, arenas, difference, effect, is_run, table

PAPERS = Path(__file__).resolve().parent.parent / "src" / "equipoise" / "experiments" / "papers"
NAMES = {"raw": "", "temperature": " scaled", "": ""}


def claim_table() -> list[str]:
    """Write one line per claim and arena."""
    claims = tomllib.loads((FOLDER / "claims.toml").read_text("utf-8"))["claim"]
    heads = ("paper", "claim", "published", "arena", "effect here", "seeds", "verdict")
    return table(heads, [line for claim in claims for line in _lines(claim)])


def _lines(claim: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    about = (claim["paper"], claim["says"], _published(claim["printed"]))
    for place, arena in enumerate(claim["arenas"]):
        name = arenas()[arena]["title"]
        yield (*(about if place == 0 else ("", "", "")), name, *outcome(claim, arena))


def outcome(claim: Mapping[str, Any], arena: str) -> tuple[str, str, str]:
    """Give effect, seeds and verdict of a claim in an arena."""
    found = difference(
        arena,
        claim["method"],
        claim["metric"],
        calibrator=claim.get("calibrator", "identity"),
        versus=claim["versus"],
    )
    if found is None:
        return "", "", "not yet run" if not is_run(arena) else "not yet compared"
    verdict = {"better": "**holds**", "worse": "**fails**: the opposite", "tie": "tie"}[found["verdict"]]
    if claim.get("want") == "not worse" and found["verdict"] == "tie":
        verdict = "**holds** (tie)"
    if found["n_seeds"] == 1:
        verdict += " (one seed)"
    return effect(found), str(found["n_seeds"]), verdict


@cache
def _printed() -> dict[str, str]:
    keys = ("paper", "table", "dataset", "model", "method", "metric", "stage")
    found: dict[str, str] = {}
    for file in sorted(PAPERS.glob("*.csv")):
        with file.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                found.setdefault("/".join(row[key] for key in keys), row["value"])
    return found


def _published(cells: list[str]) -> str:
    """Write the papers' cells, two by two: from the rival to the method."""
    if not cells:
        return "no table"
    pairs = []
    for first, second in zip(cells[::2], cells[1::2], strict=True):
        _, _, data, network, *_ = first.split("/")
        pairs.append(f"{data}, {network}: {_printed()[first]} → {_printed()[second]}")
    return "; ".join(pairs)
