"""Differences between methods over seeds, with verdicts: from the paired differences of each seed, whoever ran it.

python evidence/differences.py

The command computes ``differences.csv`` of every benchmark again from its ``paired.csv``; nothing is trained.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from pairs import KEYS, is_variant
from tidy import HERE, SECOND, read, write

from equipoise.evaluate import Difference, Score, StandardError
from equipoise.evaluate.differences import correct_family, difference_test
from equipoise.evaluate.standard_error import one_run_error

LEVEL = 0.95
#: Differences within these are called equivalent: a share of the baseline's NLL, and an amount of ECE.
NLL_SHARE, ECE_AMOUNT = 0.01, 0.005
#: Ending of rivals that have the weight decay of cross-entropy: a supplement to the second edition.
DECAY = "@decay"
#: Comparisons that share these answer one question, and are corrected for their number together.
FAMILY = ("question", "split", "calibrator", "versus_calibrator", "metric")


def differences(benchmark: str, paired: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield one row per question, pair of methods and metric; families keep the order of their first row.

    Settings of a method other than the paper's are families of their own: some are the same runs under another name. In
    the second edition the tuned methods are a family, and those at the settings of papers another.

    Args:
        benchmark: Name of the benchmark.
        paired: Rows of ``paired.csv``.
    """
    labels = {str(row["method"]) for row in paired}
    families: dict[tuple[object, ...], dict[tuple[str, ...], list[Mapping[str, Any]]]] = {}
    for row in paired:
        method = row["method"]
        family = (*(row[key] for key in FAMILY), is_variant(method, labels), _family(benchmark, method))
        families.setdefault(family, {}).setdefault(tuple(row[key] for key in KEYS), []).append(row)
    for family in families.values():
        found = correct_family([_tested(rows) for rows in family.values()], level=LEVEL)
        for key, one in zip(family, found, strict=True):
            yield {
                "benchmark": benchmark,
                **dict(zip(KEYS, key, strict=True)),
                "n_seeds": one.n_seeds,
                "value": one.after,
                "versus_value": one.before,
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "p_value": one.p_value,
                "comparisons": one.comparisons,
                "detectable": one.detectable(level=LEVEL),
                "verdict": one.verdict,
                **({"family": _family(benchmark, key[2]), **equivalence(one)} if benchmark in SECOND else {}),
            }


@cache
def tuned(benchmark: str) -> frozenset[str]:
    """Return the methods of the second edition whose setting was chosen on ``tune``; none in the first."""
    file = HERE / "specs" / f"{benchmark}-1-tuned.toml"
    if not file.exists():
        return frozenset()
    return frozenset(one["title"] for one in tomllib.loads(file.read_text("utf-8"))["method"])


def _family(benchmark: str, method: str) -> str:
    if method.endswith(DECAY):
        return "decay"
    return "tuned" if method in tuned(benchmark) else "papers"


def equivalence(one: Difference) -> dict[str, Any]:
    """Return the 90% interval of a difference, the margin of its metric, and the verdict that considers both.

    The interval is not corrected for the number of comparisons: each claim of equivalence is two one-sided tests at 5%.

    Args:
        one: A difference, with the verdict of its family.

    Returns:
        ``low_90``, ``high_90``, ``margin`` (None for metrics without one) and ``conclusion``: ``"equivalent"`` if the
        interval lies within the margin, else ``"better"`` or ``"worse"`` by the test, else ``"undecided"``.
    """
    half = one.error.half_width(2 * (1 - LEVEL))
    margin = {"nll": NLL_SHARE * one.before, "ece": ECE_AMOUNT}.get(one.metric)
    significant = one.verdict if one.verdict != "tie" else "undecided"
    is_within = margin is not None and abs(one.difference) + half < margin
    return {
        "low_90": one.difference - half,
        "high_90": one.difference + half,
        "margin": margin,
        "conclusion": "equivalent" if is_within else significant,
    }


def _tested(rows: Sequence[Mapping[str, Any]]) -> Difference:
    """Return the difference of two methods over the seeds that both have."""
    return difference_test(
        str(rows[0]["metric"]),
        float(np.mean([row["versus_value"] for row in rows])),
        float(np.mean([row["value"] for row in rows])),
        standard_error(rows),
        n_seeds=len(rows),
        level=LEVEL,
    )


def standard_error(rows: Sequence[Mapping[str, Any]]) -> StandardError:
    """Return the standard error of a mean difference over seeds.

    The error of the test rows is ``shared_error``, from resamples that all seeds share, where every seed has it. The
    error of one seed's rows, which its interval gives, is an upper bound, and is used elsewhere.

    Args:
        rows: One row of ``paired.csv`` per seed.
    """
    shared = [row.get("shared_error") for row in rows]
    if any(one is None for one in shared):
        shared = [one_run_error(Score(0.0, row["low"], row["high"]), LEVEL) for row in rows]
    of_rows = float(np.sqrt(np.mean(np.square(np.array(shared, dtype=float)))))
    if len(rows) == 1:
        return StandardError(of_rows)
    gaps = [row["value"] - row["versus_value"] for row in rows]
    return StandardError(of_rows, np.inf, float(np.std(gaps, ddof=1) / np.sqrt(len(gaps))), len(gaps) - 1.0)


def main() -> int:
    """Compute the differences of all benchmarks again."""
    for file in sorted((*HERE.glob("*/paired.csv"), *HERE.glob("second/*/paired.csv"))):
        folder = str(file.parent.relative_to(HERE))
        name = file.parent.name.removesuffix("_fresh")
        write(f"{folder}/differences.csv", differences(name, read(f"{folder}/paired.csv")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
