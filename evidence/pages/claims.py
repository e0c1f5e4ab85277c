"""The claims of papers beside what was found: each holds, ties or fails, or was not run yet."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

from pages.results import FOLDER, benchmarks, difference, effect, is_run, mean, seeds_of, table, unpaired

from equipoise.catalogue import CATALOGUE

PAPERS = Path(__file__).resolve().parents[2] / "src" / "equipoise" / "experiments" / "papers"
#: A loss of accuracy below this is none.
MARGIN = 0.005


#: Methods that the second edition calls by a shorter name.
SHORT = {"differentiated_mutual_learning": "diff_dml"}


@final
@dataclass(frozen=True)
class ClaimOutcome:
    """What became of a claim in a benchmark of the second edition."""

    paper: str
    says: str
    benchmark: str
    effect: str
    seeds: str
    verdict: str


@cache
def all_claims() -> list[dict[str, Any]]:
    """Return the claims."""
    found: list[dict[str, Any]] = tomllib.loads((FOLDER / "claims.toml").read_text("utf-8"))["claim"]
    return found


def claim_table() -> list[str]:
    """Write one line per claim and benchmark."""
    heads = ("paper", "claim", "published", "benchmark", "effect here", "seeds", "verdict")
    return table(heads, [line for claim in all_claims() for line in _lines(claim)])


def second_claims(benchmarks: Sequence[str], ending: str = "") -> list[ClaimOutcome]:
    """Return what became of every claim whose methods a benchmark of the second edition has.

    Args:
        benchmarks: Benchmarks that were run.
        ending: Ending of the names of the methods other than cross-entropy.
    """
    found = []
    for claim in all_claims():
        named = {key: _second_name(claim[key], ending) for key in ("method", "versus")}
        if "among" in claim:
            named["among"] = [_second_name(label, ending) for label in claim["among"]]
        for benchmark in benchmarks:
            folder = f"second/{benchmark}"
            if {named["method"], named["versus"], *named.get("among", ())} <= seeds_of(folder).keys():
                ends = outcome({**claim, **named}, folder)
                found.append(ClaimOutcome(claim["paper"], claim["says"], benchmark, *ends))
    return found


def _second_name(label: str, ending: str) -> str:
    return label if label == "ce" else SHORT.get(label, label) + ending


def _lines(claim: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    about = (claim["paper"], claim["says"] + _fidelity(claim["method"]), _published(claim))
    for place, benchmark in enumerate(claim["benchmarks"]):
        name = benchmarks()[benchmark]["title"]
        yield (*(about if place == 0 else ("", "", "")), name, *outcome(claim, benchmark))


def _fidelity(method: str) -> str:
    """Say that a method was rebuilt from its paper, whose code nobody has: the verdict is about our reading."""
    entries = [group[method] for group in (CATALOGUE["losses"], CATALOGUE["objectives"]) if method in group]
    return " (ours is a reconstruction)" if entries and entries[0].fidelity == "reconstruction" else ""


def outcome(claim: Mapping[str, Any], benchmark: str) -> tuple[str, str, str]:
    """Give effect, seeds and verdict of a claim in a benchmark."""
    if not is_run(benchmark):
        return "", "", "not yet run"
    if claim.get("want") == "lowest":
        return _place(claim, benchmark)
    where = {"calibrator": claim.get("calibrator", "identity"), "versus": claim["versus"]}
    found = difference(benchmark, claim["method"], claim["metric"], **where)
    apart = ""
    if found is None or found["n_seeds"] < _shared_seeds(benchmark, claim):
        found, apart = unpaired(benchmark, claim["method"], claim["metric"], **where), ", not paired"
    if found is None:
        return "", "", "not yet compared"
    verdict = {"better": "**holds**", "worse": "**fails**: the opposite", "tie": "tie"}[found["verdict"]]
    if claim.get("want") == "not worse":
        is_small = found["low"] > -MARGIN
        verdict = "**holds**" if is_small else "not shown" if found["verdict"] != "worse" else verdict
    if found["n_seeds"] == 1:
        verdict += " (one seed)"
    return effect(found) + apart, str(found["n_seeds"]), verdict


def _shared_seeds(benchmark: str, claim: Mapping[str, Any]) -> int:
    seeds = seeds_of(benchmark)
    return len(set(seeds.get(claim["method"], ())) & set(seeds.get(claim["versus"], ())))


def _place(claim: Mapping[str, Any], benchmark: str) -> tuple[str, str, str]:
    """Say which place a method has in the mean among those of the paper's table."""
    known = [label for label in claim["among"] if label in seeds_of(benchmark)]
    if claim["method"] not in known:
        return "", "", "not yet compared"
    ordered = sorted(known, key=lambda label: mean(benchmark, label, "identity", claim["metric"]))
    number = {label: f"{100 * mean(benchmark, label, 'identity', claim['metric']):.2f}" for label in known}
    place = ordered.index(claim["method"]) + 1
    first = "" if place == 1 else f"; `{ordered[0]}` has {number[ordered[0]]}"
    text = f"{number[claim['method']]}, place {place} of {len(known)}{first}"
    seeds = len(seeds_of(benchmark)[claim["method"]])
    verdict = "**holds** in the mean" if place == 1 else "**fails** in the mean"
    return text, str(seeds), verdict + (" (one seed)" if seeds == 1 else "")


@cache
def _printed() -> dict[tuple[str, ...], str]:
    """Read every printed number: by paper, table, data, network, method, metric and stage."""
    keys = ("paper", "table", "dataset", "model", "method", "metric", "stage")
    found: dict[tuple[str, ...], str] = {}
    for file in sorted(PAPERS.glob("*.csv")):
        with file.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                found.setdefault(tuple(row[key] for key in keys), row["value"])
    return found


def _published(claim: Mapping[str, Any]) -> str:
    """Write the papers' cells, two by two: from the rival to the method; and in how many of all of them it is so."""
    cells = claim["printed"]
    if not cells:
        return "no table"
    pairs = []
    for first, second in zip(cells[::2], cells[1::2], strict=True):
        old, new = tuple(first.split("/")), tuple(second.split("/"))
        pairs.append(f"{old[2]}, {old[3]}: {_printed()[old]} → {_printed()[new]}")
    return "; ".join([*pairs, *_agreement(claim)])


def _agreement(claim: Mapping[str, Any]) -> Iterator[str]:
    """Count the printed pairs of the paper that the claim is about, and those that agree with it."""
    if claim.get("want") == "lowest":
        return
    rival, wanted = (tuple(cell.split("/")) for cell in claim["printed"][:2])
    gains = {}
    for (paper, number, data, network, method, *about), value in _printed().items():
        other = _printed().get((paper, number, data, network, rival[4], *about))
        if (paper, method, *about) == (wanted[0], *wanted[4:]) and other is not None:
            lower = float(other) - float(value)
            gains.setdefault((data, network), -lower if claim["metric"] == "accuracy" else lower)
    so = sum(gain >= 0 if claim.get("want") == "not worse" else gain > 0 for gain in gains.values())
    yield f"so in {so} of {len(gains)} printed pairs"
