"""Tied classes and confidences on the edges of bins: compiled and plain, whole and in chunks, all numbers agree."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from equipoise import Predictions, score
from equipoise.kernels.dispatch import use_backend, why_fallback
from equipoise.metrics import CalibrationState
from stress.judge import Wrong

BINS = (1, 2, 3, 5, 6, 7, 10, 12, 15, 20, 25, 30, 49, 100)
#: Smoothed errors are found by a search, which ends where steps are smaller than this.
SEARCHED = {"smece": 1e-6}


def prepare_ties(folder: Path) -> None:
    for dtype in (np.float32, np.float64):
        for kind in ("probs", "logits"):
            rows = Predictions(**{kind: np.full((2, 2), 0.5, dtype)}, labels=[0, 1])
            for way in _ways():
                with use_backend(way):
                    score(rows, n_resamples=1)


def _ways() -> tuple[Any, ...]:
    return ("fallback",) if why_fallback() else ("fallback", "compiled")


def try_ties(_: None, chance: np.random.Generator, folder: Path) -> None:
    """Score the same rows in every way; the bins of the top label are those of exact fractions."""
    n_bins, closed = int(chance.choice(BINS)), str(chance.choice(["right", "left"]))
    n, dtype = int(chance.choice([1, 2, 7, 40])), (np.float16, np.float32, np.float64)[chance.integers(3)]
    how = str(chance.choice(["tied logits", "small logits", "edges", "edges", "ties"]))
    kind, scores, exact = _scores(how, n, n_bins, dtype, chance)
    labels = chance.integers(0, scores.shape[1], n)
    weights = chance.choice([0.5, 1.0, 2.0], n) if chance.random() < 0.3 else None
    rows = Predictions(**{kind: scores}, labels=labels, weights=weights)
    settings: dict[str, Any] = {"n_bins": n_bins, "closed": closed}
    cards, counts = {}, {}
    step = int(chance.integers(1, n + 1))
    for way in _ways():
        with use_backend(way):
            again = Predictions(**{kind: scores}, labels=labels, weights=weights)
            cards[way] = score(again, n_resamples=1, **settings)
            whole, parts = (
                CalibrationState.of(again, **settings),
                CalibrationState(rows.n_classes or 0, **settings),
            )
            for start in range(0, n, step):
                parts.update(rows.take(slice(start, start + step)))
            counts[way] = _rows(whole)
            counts[f"{way} in chunks"] = _rows(parts)
    where = f"{how}, {np.dtype(dtype)}, {n_bins} bins closed {closed}"
    first = next(iter(counts))
    for name, found in counts.items():
        if not np.array_equal(found, counts[first]):
            raise Wrong(f"{where}: {_differing(found, counts[first])} bins differ, {name} from {first}")
    _check_cards(cards, where)
    if exact is not None:
        expected = _exact_bins(exact, n_bins, closed, dtype if kind == "probs" else None)
        if not np.array_equal(counts[first], expected):
            raise Wrong(f"{where}: {_differing(counts[first], expected)} bins differ from exact fractions")


def _scores(
    how: str, n: int, n_bins: int, dtype: Any, chance: np.random.Generator
) -> tuple[str, np.ndarray, list[Fraction] | None]:
    """Return what the scores are, the scores, and the confidence of each row as a fraction, where it is known."""
    if how == "edges":  # the top class has a probability of j/n, another class the rest
        places = [Fraction(int(chance.integers(-(-n_bins // 2), n_bins + 1)), n_bins) for _ in range(n)]
        top = np.array([float(place) for place in places]).astype(dtype)
        probs = np.stack([top, (1 - top.astype(np.float64)).astype(dtype)], 1)
        if chance.random() < 0.5:
            probs = probs[:, ::-1].copy()
        return "probs", probs, places if dtype is not np.float16 else None
    k = int(chance.choice([2, 3, 4, 5, 6, 7, 10, 15, 20]))
    if how == "small logits":  # few different values, so that classes tie by chance
        return "logits", chance.integers(-2, 3, (n, k)).astype(dtype), None
    tied = [int(chance.integers(1, k + 1)) for _ in range(n)]
    order = np.stack([chance.permutation(k) for _ in range(n)])
    is_top = order < np.array(tied)[:, None]
    exact = [Fraction(1, m) for m in tied]
    if how == "tied logits":  # the others are so low that they do not count
        level = float(chance.choice([0.0, 1.0, 3.5, 100.0]))
        return "logits", np.where(is_top, level, level - 2000.0).astype(dtype), exact
    probs = (is_top / is_top.sum(1, keepdims=True)).astype(dtype)
    return "probs", probs, exact if dtype is not np.float16 else None


def _rows(state: CalibrationState) -> np.ndarray:
    return state.sums.rows.sum(1)


def _differing(one: np.ndarray, other: np.ndarray) -> int:
    return int((one != other).sum())


def _exact_bins(places: list[Fraction], n_bins: int, closed: str, dtype: Any) -> np.ndarray:
    """Count rows by bin: fractions compared as they are, or, given a type, as both round to it."""
    edges = [Fraction(j, n_bins) for j in range(1, n_bins)]
    if dtype is not None:
        places = [Fraction(float(dtype(float(place)))) for place in places]
        edges = [Fraction(float(dtype(float(edge)))) for edge in edges]
    found = np.zeros(n_bins, np.int64)
    for place in places:
        found[sum(edge < place if closed == "right" else edge <= place for edge in edges)] += 1
    return found


def _check_cards(cards: dict[Any, Any], where: str) -> None:
    plain, *others = cards.values()
    for card in others:
        if set(card) != set(plain):
            raise Wrong(f"{where}: other metrics compiled: {set(card) ^ set(plain)}")
        for name in plain:
            one, other = plain[name].value, card[name].value
            if not abs(one - other) <= SEARCHED.get(name, 1e-9) * (1 + abs(one)):
                raise Wrong(f"{where}: {name} is {one} plain and {other} compiled")
