"""Certified thresholds: how often the promise is broken, and how many predictions they accept.

Run: python benchmarks/decisions.py [--repeats 10000] [--max-error 0.1] [--held-out 60] [--answers FOLDER_OR_ARCHIVE]

The first table has known error curves. A cell is broken if the true error among accepted predictions exceeds the limit.
The schemes are

    one       fixed-sequence testing from the strictest rank that could pass
    five      the same from five starts, each with a fifth of the risk
    fallback  five starts that pass their risk on while every test passes (fallback procedure)
    grid      all ranks of a grid, each with its part of the risk (Bonferroni)
    band      the same with the exact joint level of the grid (a simultaneous band of the error curve)
    split     a fifth of the labels chooses the start, the others test
    simes     five starts whose risks add up by Simes' inequality
    ours      equipoise.decisions: a walk, and exact levels for all later ranks after a failure

The second table has random error curves that no setting was chosen on: monotone or not, with and without ties, few and
many rows, several limits. The third has answers of language models (one CSV file per model): thresholds are certified
on 1,000 labels and judged on the remaining ones, 20 times.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import tarfile
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from equipoise.decisions.threshold_tests import (
    choose_ranks,
    fewest_rows,
    last_certified,
    plan_tests,
    rank_p_values,
)

ROWS = (100, 200, 500, 1000, 2000, 5000, 20000)
RISKS = (0.01, 0.05, 0.1)
SCHEMES = ("one", "five", "fallback", "grid", "band", "split", "simes", "ours")
U = np.linspace(0, 1, 20001)

#: Error rate of the row at each share of coverage, for an error limit r.
CURVES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "steep": lambda u, r: 0.1 * r + 0.6 / (1 + np.exp(-(u - 0.6) / 0.04)),
    "flat": lambda u, r: r * (0.2 + 5.2 * u),
    "all": lambda u, r: r * (0.5 + u),
    "none": lambda u, r: np.full_like(u, r * 1.000001),
    "hole": lambda u, r: r * np.where(u < 0.02, 4.0, np.where(u < 0.3, 0.25, 3.0)),
}
#: A discrete score: share of the rows at each value, and error rate in units of the limit.
DISCRETE = (
    np.array([0.25, 0.2, 0.05, 0.1, 0.15, 0.05, 0.1, 0.1]),
    np.array([0.3, 0.6, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0]),
)


def integrate(rate: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2) * (U[1] - U[0])])


def draw(
    curve: np.ndarray, n: int, ranks: np.ndarray, repeats: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mistakes among the first rows at some ranks, the true coverage there and the true error."""
    total = integrate(curve)
    steps = np.diff(np.concatenate([[0], ranks]))
    place = np.cumsum(rng.standard_gamma(steps, (repeats, len(ranks))), axis=1)
    place /= place[:, -1:] + rng.standard_gamma(n + 1 - ranks[-1], (repeats, 1))
    at = np.interp(place, U, total)
    low, before = (np.pad(one[:, :-1], ((0, 0), (1, 0))) for one in (place, at))
    mean = np.clip((at - before) / np.maximum(place - low, 1e-300), 0, 1)
    wrong = rng.binomial(np.broadcast_to(steps - 1, mean.shape), mean)
    wrong += rng.random(mean.shape) < np.interp(place, U, curve)
    return np.cumsum(wrong, axis=1), place, at / place


def all_ranks(first: int, n: int) -> np.ndarray:
    grown = np.round(300 * 1.01 ** np.arange(1 + max(0, int(np.log(n / 300) / np.log(1.01)))))
    ranks = np.unique(np.concatenate([np.arange(first, min(n, 300) + 1), grown, [n]])).astype(np.int64)
    return ranks[(ranks >= first) & (ranks <= n)]


def p_values(wrong: np.ndarray, ranks: np.ndarray, limit: float) -> np.ndarray:
    """Return p-values of counts (..., m) at common ranks (m,), from a table."""
    most = int(ranks[-1] * limit + 10 * np.sqrt(ranks[-1] * limit) + 10)
    table = rank_p_values(np.arange(most + 1)[None, :], ranks[:, None], limit)
    return table[np.arange(len(ranks)), np.minimum(wrong, most)]


def five_starts(n: int, limit: float, risk: float) -> list[int]:
    first = fewest_rows(limit, risk / 5)
    return [first * 2**j for j in range(5) if first * 2**j <= n]


def shares_at(ranks: np.ndarray, starts: list[int], share: float) -> np.ndarray:
    """Return shares of the risk at ranks (..., m); every start is rounded up to a rank."""
    shares = np.zeros(ranks.shape)
    for start in starts:
        at = np.minimum((ranks < start).sum(axis=-1, keepdims=True), ranks.shape[-1] - 1)
        np.put_along_axis(shares, at, np.take_along_axis(shares, at, -1) + share, -1)
    return shares


def walk(p: np.ndarray, ranks: np.ndarray, start: int, level: float) -> np.ndarray:
    """Return the last index that fixed-sequence testing from a start reaches."""
    first = np.minimum((ranks < start).sum(axis=-1, keepdims=True), ranks.shape[-1] - 1)
    before = np.arange(p.shape[-1]) < first
    passed = np.logical_and.accumulate(before | (p <= level * (1 + 1e-12)), axis=-1).sum(axis=-1)
    return np.where(passed > first[..., 0], passed - 1, -1)


def fallback(p: np.ndarray, shares: np.ndarray, risk: float) -> np.ndarray:
    best, level = np.full(p.shape[:-1], -1), np.zeros(p.shape[:-1])
    for j in range(p.shape[-1]):
        level = level + shares[..., j]
        passed = (level > 0) & (p[..., j] <= level * risk * (1 + 1e-12))
        best, level = np.where(passed, j, best), np.where(passed, level, 0.0)
    return best


def simes(p: np.ndarray, shares: np.ndarray, risk: float) -> np.ndarray:
    best, total = np.full(p.shape[:-1], -1), np.cumsum(shares, axis=-1)
    for start in range(p.shape[-1]):
        own = shares[..., start : start + 1]
        if not own.any():
            continue
        worst = np.maximum.accumulate(p[..., start:], axis=-1)
        passed = worst <= (total[..., start:] - total[..., start : start + 1] + own) * risk * (1 + 1e-12)
        passed &= own > 0
        last = p.shape[-1] - 1 - np.argmax(passed[..., ::-1], axis=-1)
        best = np.maximum(best, np.where(passed.any(axis=-1), last, -1))
    return best


def simes_shares(ranks: np.ndarray, n: int, limit: float, risk: float) -> np.ndarray:
    base = fewest_rows(limit, risk / 5)
    count = sum(base * 2**j <= n for j in range(5)) or 1
    growth = max(2.0, (0.15 * n / base) ** 0.25) if count == 5 else 2.0
    later = 0.0 if count == 1 else (0.15 if count == 2 else 0.2)
    first = 1 - later * (count - 1)
    shares = shares_at(ranks, [fewest_rows(limit, risk * first)], first)
    return shares + shares_at(ranks, [round(base * growth**j) for j in range(1, count)], later)


def best_of_five(p: np.ndarray, ranks: np.ndarray, n: int, limit: float, risk: float) -> np.ndarray:
    best = np.full(p.shape[:-1], -1)
    for start in five_starts(n, limit, risk):
        best = np.maximum(best, walk(p, ranks, start, risk / 5))
    return best


@lru_cache(maxsize=256)
def band_of(n: int, limit: float, risk: float) -> tuple[np.ndarray, float]:
    """Return 30 ranks and the largest level at which any of them passes with at most the risk, at the limit."""
    ranks = np.unique(np.geomspace(fewest_rows(limit, risk), n, 30).round().astype(np.int64))
    rng, least = np.random.default_rng(0), []
    steps = np.diff(np.concatenate([[0], ranks]))
    for _ in range(10):
        wrong = np.cumsum(rng.binomial(np.broadcast_to(steps, (20000, len(steps))), limit), axis=1)
        least.append(p_values(wrong, ranks, limit).min(axis=1))
    values, counts = np.unique(np.concatenate(least).round(12), return_counts=True)
    within = np.flatnonzero(np.cumsum(counts) <= risk * 200000)
    return ranks, float(values[within[-1]]) * (1 + 1e-9) if len(within) else 0.0


def last_below(p: np.ndarray, level: float) -> np.ndarray:
    passed = p <= level
    return np.where(passed.any(axis=1), p.shape[1] - 1 - passed[:, ::-1].argmax(axis=1), -1)


def outcome(
    best: np.ndarray, coverage: np.ndarray, error: np.ndarray, limit: float
) -> tuple[float, float, float]:
    """Return the mean coverage, the share of certified samples and the share of broken promises."""
    at, found = np.arange(len(best)), best >= 0
    kept = np.where(found, coverage[at, best], 0.0)
    return float(kept.mean()), float(found.mean()), float((found & (error[at, best] > limit)).mean())


Cell = dict[str, tuple[float, float, float]]


def continuous_cells(
    curve: np.ndarray, n: int, risks: list[float], limit: float, repeats: int, rng: np.random.Generator
) -> dict[float, Cell]:
    """Return the outcomes by risk; all risks share the draws."""
    risks = [risk for risk in risks if fewest_rows(limit, risk) <= n]
    if not risks:
        return {}
    plans = {risk: plan_tests(choose_ranks(n, limit, risk), n, limit, risk) for risk in risks}
    every = [all_ranks(min(fewest_rows(limit, risk) for risk in risks), n)]
    for risk in risks:
        every += [plans[risk].ranks, band_of(n, limit, risk)[0], five_starts(n, limit, risk)]
    ranks = np.unique(np.concatenate(every)).astype(np.int64)
    wrong, coverage, error = draw(curve, n, ranks, repeats, rng)
    p = p_values(wrong, ranks, limit)
    split = split_cells(curve, n, risks, limit, repeats, rng)
    cells = {}
    for risk in risks:
        starts = five_starts(n, limit, risk) or [fewest_rows(limit, risk)]
        coarse, level = band_of(n, limit, risk)
        coarse, own = np.searchsorted(ranks, coarse), np.searchsorted(ranks, plans[risk].ranks)
        found = {
            "one": walk(p, ranks, fewest_rows(limit, risk), risk),
            "five": best_of_five(p, ranks, n, limit, risk),
            "fallback": fallback(p, shares_at(ranks, starts, 1 / len(starts)), risk),
            "grid": _back(last_below(p[:, coarse], risk / len(coarse)), coarse),
            "band": _back(last_below(p[:, coarse], level), coarse),
            "simes": simes(p, simes_shares(ranks, n, limit, risk), risk),
            "ours": _back(last_certified(wrong[:, own], plans[risk]), own),
        }
        cells[risk] = {name: outcome(best, coverage, error, limit) for name, best in found.items()}
        cells[risk]["split"] = split[risk]
    return cells


def _back(best: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.where(best >= 0, index[best], -1)


def split_cells(
    curve: np.ndarray, n: int, risks: list[float], limit: float, repeats: int, rng: np.random.Generator
) -> dict[float, tuple[float, float, float]]:
    """Choose the start with the largest standardized distance from the limit on a fifth of the labels."""
    n_choose = n // 5
    n_test, first = n - n_choose, min(fewest_rows(limit, risk) for risk in risks)
    if n_test < first:
        return dict.fromkeys(risks, (0.0, 0.0, 0.0))
    seen = np.unique(
        np.maximum(1, np.geomspace(min(0.9, first / n_test), 1, 30) * n_choose).round().astype(int)
    )
    wrong, _, _ = draw(curve, n_choose, seen, repeats, rng)
    distance = (limit - (wrong + 10 * limit) / (seen + 10)) * np.sqrt(seen)
    chosen = (distance >= 0.8 * distance.max(axis=1, keepdims=True)).argmax(axis=1)
    ranks = all_ranks(first, n_test)
    wrong, coverage, error = draw(curve, n_test, ranks, repeats, rng)
    p = p_values(wrong, ranks, limit)
    cells = {}
    for risk in risks:
        start = np.searchsorted(ranks, np.maximum(seen[chosen] / n_choose * n_test, fewest_rows(limit, risk)))
        start = np.minimum(start, len(ranks) - 1)
        failed = (p > risk) & (np.arange(len(ranks)) >= start[:, None])
        stop = np.where(failed.any(axis=1), failed.argmax(axis=1), len(ranks))
        cells[risk] = outcome(np.where(stop > start, stop - 1, -1), coverage, error, limit)
    return cells


def discrete_cell(
    scores: tuple[np.ndarray, np.ndarray],
    n: int,
    risk: float,
    limit: float,
    repeats: int,
    rng: np.random.Generator,
) -> Cell:
    """Return the outcomes for a score with few values: their shares, and error rates in units of the limit."""
    if fewest_rows(limit, risk) > n:
        return {}
    mass, rate = scores[0], np.clip(scores[1] * limit, 0, 1)
    coverage = np.cumsum(mass)
    error = np.cumsum(mass * rate) / coverage
    size = rng.multinomial(n, mass, repeats)
    rows, wrong = np.cumsum(size, axis=1), np.cumsum(rng.binomial(size, rate), axis=1)
    p = np.where(rows > 0, rank_p_values(wrong, np.maximum(rows, 1), limit), 1.0)
    first, ranks = fewest_rows(limit, risk), choose_ranks(n, limit, risk)
    starts = five_starts(n, limit, risk) or [first]
    found = {
        "one": walk(p, rows, first, risk),
        "five": best_of_five(p, rows, n, limit, risk),
        "fallback": fallback(p, shares_at(rows, starts, 1 / len(starts)), risk),
        "grid": last_below(p, risk / len(mass)),
        "simes": simes(p, simes_shares(rows, n, limit, risk), risk),
        "ours": np.array([_ours(*pair, ranks, n, limit, risk) for pair in zip(rows, wrong, strict=True)]),
    }
    wide = [np.broadcast_to(one, (repeats, len(mass))) for one in (coverage, error)]
    return {name: outcome(best, *wide, limit) for name, best in found.items()}


def _ours(rows: np.ndarray, wrong: np.ndarray, ranks: np.ndarray, n: int, limit: float, risk: float) -> int:
    places = np.unique(np.searchsorted(rows, ranks, side="right") - 1)
    plan = plan_tests(rows[places[places >= 0]], n, limit, risk)
    at = np.searchsorted(rows, plan.ranks)
    last = int(last_certified(wrong[at], plan))
    return -1 if last < 0 else int(at[last])


def simulate(
    names: list[str], rows: list[int], risks: list[float], limit: float, repeats: int
) -> Iterator[tuple[str, int, float, Cell]]:
    for name in names:
        for n in rows:
            rng = np.random.default_rng([n, sorted([*CURVES, "discrete"]).index(name)])
            if name == "discrete":
                cells = {risk: discrete_cell(DISCRETE, n, risk, limit, repeats, rng) for risk in risks}
            else:
                curve = np.clip(CURVES[name](U, limit), 0, 1)
                cells = continuous_cells(curve, n, risks, limit, repeats, rng)
            for risk in risks:
                yield name, n, risk, cells.get(risk, {})


def random_curve(rng: np.random.Generator, limit: float, *, monotone: bool) -> np.ndarray:
    """Return an error curve through random points whose error crosses the limit at a random coverage."""
    points = np.concatenate([[0], np.sort(rng.random(5)), [1]])
    height = rng.gamma(0.8, 1.0, len(points))
    curve = np.interp(U, points, np.sort(height) if monotone else height)
    if not monotone:
        curve = height[np.searchsorted(points[1:-1], U)]
    true = integrate(curve) / np.maximum(U, 1e-9)
    at = int(rng.uniform(0.05, 1) * (len(U) - 1))
    return np.clip(curve * limit / max(true[at], 1e-3), 0, 1)


def print_held_out(arguments: argparse.Namespace) -> None:
    """Print outcomes on random curves: nothing was chosen on them."""
    ratios: dict[str, list[float]] = {"five": [], "best": []}
    excess, cells = [], 0
    for index in range(arguments.held_out):
        rng = np.random.default_rng([20, index])
        n, limit = (
            int(np.exp(rng.uniform(np.log(30), np.log(3000)))),
            float(rng.choice([0.02, 0.05, 0.1, 0.2])),
        )
        curve = random_curve(rng, limit, monotone=bool(index % 2))
        if index % 3 == 0:  # tied scores: 3 to 20 values
            edge = np.sort(rng.random(rng.integers(2, 20)))
            mass = np.diff(np.concatenate([[0], edge, [1]]))
            total = np.interp(np.concatenate([[0], edge, [1]]), U, integrate(curve))
            scores = mass, np.diff(total) / mass / limit
            repeats = min(arguments.repeats, 1000)
            found = {risk: discrete_cell(scores, n, risk, limit, repeats, rng) for risk in RISKS}
        else:
            repeats = arguments.repeats
            found = continuous_cells(curve, n, list(RISKS), limit, repeats, rng)
        for risk, cell in found.items():
            if not cell:
                continue
            cells += 1
            excess.append((cell["ours"][2] - risk) / np.sqrt(risk * (1 - risk) / repeats))
            for name, other in (("five", cell["five"][0]), ("best", max(one[0] for one in cell.values()))):
                if other > 0.002:
                    ratios[name].append(cell["ours"][0] / other)
    print(f"\nHeld-out curves: {arguments.held_out} curves, {cells} cells with three risks")
    print(
        f"broken promises above the risk by more than two, three standard errors: {sum(z > 2 for z in excess)}, "
        f"{sum(z > 3 for z in excess)} cells; largest {max(excess):.2f}"
    )
    for name, values in ratios.items():
        low = np.quantile(values, [0, 0.05, 0.25, 0.5])
        print(
            f"coverage relative to {name}, {len(values)} cells: smallest {low[0]:.3f}, 5% {low[1]:.3f}, "
            f"25% {low[2]:.3f}, median {low[3]:.3f}; below 0.9 in {sum(one < 0.9 for one in values)}"
        )


def print_simulations(arguments: argparse.Namespace) -> None:
    print(
        f"Error limit {arguments.max_error:.0%}, {arguments.repeats:,} repeats. Mean coverage in percent by scheme;"
    )
    print("then certified and broken promises of ours, in percent.\n")
    print(
        f"{'curve':9}{'rows':>6}{'risk':>6}"
        + "".join(f"{one:>9}" for one in SCHEMES)
        + f"{'cert.':>8}{'broken':>8}"
    )
    counted: list[Cell] = []
    names = [name for name in (*CURVES, "discrete") if not arguments.only or name in arguments.only]
    for name, n, risk, cell in simulate(
        names, arguments.rows, list(RISKS), arguments.max_error, arguments.repeats
    ):
        if not cell:
            print(f"{name:9}{n:6}{risk:6.2f}  too few rows")
            continue
        shown = "".join(f"{100 * cell[one][0]:9.2f}" if one in cell else f"{'':9}" for one in SCHEMES)
        coverage, certified, broken = cell["ours"]
        error = 3 * np.sqrt(risk * (1 - risk) / arguments.repeats)
        mark = " !" if broken > risk + error else ""
        best = max(one[0] for one in cell.values())
        if name != "none" and best > 0.001:
            counted.append(cell)
            mark += " <0.9" if coverage < 0.9 * best else ""
            mark += " <five" if coverage < cell["five"][0] else ""
        print(f"{name:9}{n:6}{risk:6.2f}{shown}{100 * certified:8.1f}{100 * broken:8.2f}{mark}", flush=True)
    if counted:
        print_schemes(counted)


def print_schemes(cells: list[Cell]) -> None:
    """Print how each scheme compares with the best one of each cell, and ours with each scheme."""
    print(f"\n{len(cells)} cells in which a scheme accepts more than 0.1%:")
    columns = ("mean coverage", "of the best", "least", "below 0.9", "ours / it, least", "mean")
    print(f"{'scheme':9}" + "".join(f"{column:>18}" for column in columns))
    for name in (one for one in SCHEMES if any(one in cell for cell in cells)):
        found = [cell for cell in cells if name in cell]
        own, ours = (np.array([cell[one][0] for cell in found]) for one in (name, "ours"))
        share = own / [max(one[0] for one in cell.values()) for cell in found]
        against = ours[own > 0.001] / own[own > 0.001]
        print(
            f"{name:9}{100 * own.mean():18.2f}{share.mean():18.3f}{share.min():18.3f}{(share < 0.9).sum():18}"
            f"{against.min():18.3f}{ours.mean() / own.mean():18.3f}"
        )


def answers(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every file of answers in a folder or archive."""
    if path.is_dir():
        for file in sorted(path.rglob("*_eval_*.csv")):
            yield file.stem, file.read_text("utf-8")
        return
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            stream = archive.extractfile(member) if "_eval_" in member.name else None
            if stream is not None:
                yield Path(member.name).stem, stream.read().decode("utf-8")


def print_answers(arguments: argparse.Namespace) -> None:
    from equipoise import Predictions
    from equipoise.decisions import certify, certify_threshold

    certify._best_bound = lambda *_: (None, None)  # only thresholds count here
    columns = {"verbal": "verbal_numerical_confidence", "logits": "logit_perplexity_confidence"}
    totals = {kind: {"tuned": [], "ours": [], "five": [], "gate": [], "coverage": []} for kind in columns}
    models = dict.fromkeys(columns, 0)
    limit, risk, n = 0.1, 0.05, 1000
    for model, text in answers(arguments.answers):
        rows = list(csv.DictReader(io.StringIO(text)))
        # An answer counts if there is one, and every confidence that the model has is from 0 to 1.
        table = {
            kind: np.array([float(row[column] or "nan") for row in rows]) for kind, column in columns.items()
        }
        known = [one for one in table.values() if np.isfinite(one).any()]
        counts = np.array([row["extracted_answer"] != "" for row in rows])
        counts &= np.all([(one >= 0) & (one <= 1) for one in known], axis=0)
        true = np.array([row["extracted_answer"] == row["correct_answer"] for row in rows])
        for kind, values in table.items():
            usable = counts & np.isfinite(values)
            score, right = values[usable], true[usable]
            if len(score) < 2 * n:
                continue
            models[kind] += 1
            if (score >= 0.9).any():
                totals[kind]["gate"].append(float((~right[score >= 0.9]).mean()))
            for split in range(arguments.splits):
                order = np.random.default_rng([split, len(model)]).permutation(len(score))
                fit, rest = order[:n], order[n:]
                labelled = Predictions(
                    predicted=np.ones(n, int), confidence=score[fit], labels=right[fit].astype(int)
                )
                rule = certify_threshold(labelled, max_error=limit, confidence=1 - risk)
                judge = partial(_judged, score[rest], right[rest], limit)
                totals[kind]["ours"].append(judge(rule.certificate.threshold))
                totals[kind]["five"].append(judge(_five(score[fit], right[fit], limit, risk)))
                totals[kind]["tuned"].append(judge(_tuned(score[fit], right[fit], limit)))
                if rule.certificate.certified:
                    totals[kind]["coverage"].append(rule.certificate.coverage)
    print(
        f"\nLanguage models: {n:,} labels, limit {limit:.0%}, risk {risk:.0%}, {arguments.splits} splits; "
        "percent of model and split"
    )
    print(
        f"{'confidence':12}{'models':>8}{'gate 0.9':>10}{'tuned broken':>14}{'five exists':>13}{'five broken':>13}",
        end="",
    )
    print(f"{'ours exists':>13}{'ours broken':>13}{'coverage':>10}{'models with ours':>18}")
    for kind, found in totals.items():
        ours, five, tuned = (
            np.array(found[name], float).reshape(-1, 2) for name in ("ours", "five", "tuned")
        )
        by_model = ours[:, 0].reshape(models[kind], -1).mean(axis=1)
        print(
            f"{kind:12}{models[kind]:8}{100 * np.median(found['gate']):10.1f}{100 * tuned[:, 1].mean():14.1f}"
            f"{100 * five[:, 0].mean():13.1f}{100 * five[:, 1].mean():13.2f}{100 * ours[:, 0].mean():13.1f}"
            f"{100 * ours[:, 1].mean():13.2f}{100 * np.mean(found['coverage']):10.1f}{(by_model >= 0.5).sum():18}"
        )


def _judged(score: np.ndarray, right: np.ndarray, limit: float, threshold: float | None) -> tuple[bool, bool]:
    if threshold is None:
        return False, False
    accepted = score >= threshold
    return True, bool(accepted.any() and (~right[accepted]).mean() > limit)


def _curve(score: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = np.unique(score)[::-1]
    rows = np.array([(score >= value).sum() for value in values])
    return values, rows, np.array([(~right[score >= value]).sum() for value in values])


def _tuned(score: np.ndarray, right: np.ndarray, limit: float) -> float | None:
    values, rows, wrong = _curve(score, right)
    below = np.flatnonzero(wrong / rows <= limit)
    return float(values[below[-1]]) if len(below) else None


def _five(score: np.ndarray, right: np.ndarray, limit: float, risk: float) -> float | None:
    values, rows, wrong = _curve(score, right)
    best = int(best_of_five(rank_p_values(wrong, rows, limit), rows, len(score), limit, risk))
    return None if best < 0 else float(values[best])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=10000)
    parser.add_argument("--max-error", type=float, default=0.1)
    parser.add_argument("--only", nargs="*", help="curves to simulate")
    parser.add_argument("--rows", nargs="*", type=int, default=list(ROWS), help="numbers of rows to simulate")
    parser.add_argument("--held-out", type=int, default=0, help="number of random error curves")
    parser.add_argument("--answers", type=Path, help="folder or archive of answers of language models")
    parser.add_argument("--splits", type=int, default=20, help="splits of the answers of each model")
    parser.add_argument("--skip-simulation", action="store_true")
    arguments = parser.parse_args()
    if not arguments.skip_simulation:
        print_simulations(arguments)
    if arguments.held_out:
        print_held_out(arguments)
    if arguments.answers:
        print_answers(arguments)


if __name__ == "__main__":
    main()
