"""What is known about each metric, said once: its names, unit, range, which way is better, and where it is found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from equipoise.core.errors import SpecError
from equipoise.core.names import check_choice, look_up
from equipoise.metrics.metric_record import MetricFacts

__all__ = [
    "ALONE_FACTS",
    "COST_FACTS",
    "DETECTION_FACTS",
    "EXTRA_FACTS",
    "FACTS",
    "MetricFacts",
    "best_of",
    "columns",
    "learn_facts",
    "metric_facts",
    "metrics_where",
]


def _error(key: str, title: str, meaning: str, *, short: str = "", **more: Any) -> MetricFacts:
    return MetricFacts(key, title, short or title, meaning, is_error=True)._replace(**more)


def _alone(key: str, title: str, short: str, meaning: str, function: str, **more: Any) -> MetricFacts:
    instead = f"equipoise.metrics.{function} computes it"
    return _error(key, title, meaning, short=short, home="alone", instead=instead, **more)


def _score(key: str, title: str, short: str, meaning: str, high: float, **more: Any) -> MetricFacts:
    return MetricFacts(key, title, short, meaning, percent=False, high=high)._replace(**more)


_ALL = (
    MetricFacts(
        "accuracy",
        "accuracy",
        "accuracy",
        "how often the most probable class is the true one",
        better="higher",
        is_paired=True,
        column=0,
        is_main=True,
    ),
    MetricFacts(
        "top5_accuracy",
        "top-5 accuracy",
        "top-5 accuracy",
        "how often the true class is among the five most probable",
        better="higher",
        needs_scores=True,
    ),
    _score(
        "nll",
        "negative log-likelihood",
        "NLL",
        "surprise at the truth, in nats; rewards calibration and sharpness together",
        math.inf,
        is_paired=True,
        needs_scores=True,
        column=1,
        is_main=True,
    ),
    _score(
        "brier",
        "Brier score",
        "Brier",
        "squared distance from the truth; bounded, and proper like the NLL",
        2.0,
        is_paired=True,
        needs_scores=True,
        column=2,
    ),
    _score(
        "brier_calibration",
        "part of the Brier score lost to calibration",
        "part lost to calibration",
        "what calibration could win back",
        2.0,
        is_error=True,
        needs_scores=True,
        part_of="brier",
    ),
    _score(
        "brier_refinement",
        "part of the Brier score lost to refinement",
        "part lost to refinement",
        "what only a better model could",
        2.0,
        needs_scores=True,
        part_of="brier",
    ),
    _score(
        "root_brier",
        "root Brier score",
        "root Brier",
        "the same on the scale of probabilities",
        2.0**0.5,
        needs_scores=True,
    ),
    _score(
        "correct_nll",
        "log-loss of being right",
        "log-loss (right)",
        "surprise at whether the prediction was right, in nats, where only a confidence is known",
        math.inf,
        is_paired=True,
        only_confidence=True,
        column=7,
    ),
    _score(
        "correct_brier",
        "Brier score of being right",
        "Brier (right)",
        "squared distance of the confidence from 1 if right, 0 if wrong, where only a confidence is known",
        1.0,
        is_paired=True,
        only_confidence=True,
        column=8,
    ),
    _error(
        "ece",
        "ECE",
        "mean gap between confidence and accuracy over bins",
        is_paired=True,
        column=3,
        is_main=True,
    ),
    _error(
        "ece_over",
        "overconfident part of the ECE",
        "where claims exceed outcomes",
        short="overconfident part",
        is_paired=True,
        part_of="ece",
    ),
    _error(
        "ece_under",
        "underconfident part of the ECE",
        "where outcomes exceed claims",
        short="underconfident part",
        is_paired=True,
        part_of="ece",
    ),
    MetricFacts("debiased_ece", "ECE, debiased", "debiased ECE", "the same with chance taken off"),
    _error("ada_ece", "adaptive ECE", "over bins with equally many rows", column=4),
    _error(
        "classwise_ece",
        "classwise ECE",
        "over all classes, not the predicted one alone",
        needs_scores=True,
        column=5,
    ),
    _error("mce", "maximum CE", "the worst bin, however small", short="MCE", is_paired=True),
    _error(
        "rms_ce",
        "root mean square CE",
        "gaps squared, so that large ones count more",
        short="RMS CE",
        is_paired=True,
    ),
    _error("smece", "smooth ECE", "without bins", column=6),
    _error("ks", "KS error", "largest gap up to any confidence"),
    MetricFacts(
        "confidence_gap",
        "confidence - accuracy",
        "confidence − accuracy",
        "above zero: overconfident on average",
        better="zero",
        low=-1.0,
        is_paired=True,
    ),
    _error(
        "over_confidence_error",
        "overconfidence error",
        "overconfident gaps, each weighed by the confidence it was said with",
        is_paired=True,
    ),
    MetricFacts(
        "auroc",
        "AUROC of right vs wrong",
        "AUROC",
        "how well confidence tells right from wrong; 0.5 is chance",
        better="higher",
        percent=False,
    ),
    _score("aurc", "area under risk-coverage", "AURC", "mistakes left when the least sure are withheld", 1.0),
    _score(
        "eaurc",
        "excess area under risk-coverage",
        "E-AURC",
        "the part of it that a better order of the confidences would win back",
        1.0,
    ),
    _score(
        "augrc",
        "area under generalized risk-coverage",
        "AUGRC",
        "share of all rows that are accepted and wrong, over all thresholds",
        1.0,
    ),
    MetricFacts(
        "risk_at_80", "error at 80% coverage", "error at 80%", "of the 80% most confident predictions"
    ),
    MetricFacts(
        "coverage_at_5",
        "coverage at 5% error",
        "coverage at 5%",
        "the most that a threshold accepts with 5% errors on these rows; it promises nothing for others",
        better="higher",
    ),
    *(
        fact
        for name, of, largest in (
            ("", "Brier score", (1.0, 1.0, 0.25)),
            ("log_", "log-loss", (math.inf, math.log(2), math.log(2))),
        )
        for fact in (
            _score(
                f"corp_{name}miscalibration",
                f"miscalibration, {of}",
                f"miscalibration, {of}",
                f"what isotonic recalibration would win back of the {of} of being right",
                largest[0],
            ),
            _score(
                f"corp_{name}discrimination",
                f"discrimination, {of}",
                f"discrimination, {of}",
                "what the order of the confidences gains over the base rate",
                largest[1],
                better="higher",
            ),
            _score(
                f"corp_{name}uncertainty",
                f"uncertainty, {of}",
                f"uncertainty, {of}",
                f"{of} of the base rate; the {of} of being right is miscalibration - discrimination + uncertainty",
                largest[2],
            ),
        )
    ),
)

#: Every metric of a scorecard by key, in the order it is printed.
FACTS: dict[str, MetricFacts] = {facts.key: facts for facts in _ALL}

_SLOW = "a table of runs has it when asked, as its time grows with the square of the rows"

#: Metrics that no scorecard has by itself: they take long, or need more than rows.
EXTRA_FACTS: dict[str, MetricFacts] = {
    facts.key: facts
    for facts in (
        MetricFacts(
            "kde_ece",
            "KDE-ECE",
            "KDE-ECE",
            "of the whole vector, by a Dirichlet kernel",
            high=2.0,
            home="runs",
            instead=_SLOW,
        ),
        MetricFacts(
            "sece",
            "SECE",
            "SECE",
            "accuracy smoothed over confidence by a Gaussian kernel",
            home="runs",
            instead=_SLOW,
        ),
        MetricFacts(
            "mean_iou",
            "mean intersection over union",
            "mIoU",
            "of segmentation, over classes",
            better="higher",
            home="runs",
            instead="a table of runs has it, where the data are of segmentation",
        ),
    )
}

#: Metrics that are functions and nothing else: neither scorecards nor tables hold them.
ALONE_FACTS: dict[str, MetricFacts] = {
    facts.key: facts
    for facts in (
        _alone("avg_ce", "average CE", "average CE", "every bin counts the same", "average_calibration_error"),
        _alone("ece_sweep", "ECE with swept bins", "ECE, swept", "bins are as many as accuracy rises over",
               "sweep_calibration_error"),
        _alone("debiased_l2", "debiased L2 CE", "debiased L2", "gaps squared, with chance taken off",
               "debiased_calibration_error", is_error=False),
        _alone("ace", "adaptive classwise error", "ACE", "over all classes, bins with equally many rows",
               "thresholded_adaptive_calibration_error", needs_scores=True),
        _alone("tace", "thresholded adaptive classwise error", "TACE", "the same, tiny probabilities in one bin",
               "thresholded_adaptive_calibration_error", needs_scores=True),
        _score("brier_split", "Brier score in two parts", "Brier parts", "lost to calibration, lost to refinement", 2.0,
               needs_scores=True, home="alone",
               instead="it is two numbers, 'brier_calibration' and 'brier_refinement', which are on every scorecard"),
    )
}  # fmt: skip

_FOREIGN = "it needs out-of-distribution rows beside these; equipoise.evaluate.score_detection computes it"

#: Detection of out-of-distribution rows: the numbers that two sets of rows give together.
DETECTION_FACTS: dict[str, MetricFacts] = {
    facts.key: facts._replace(home="alone", instead=_FOREIGN)
    for facts in (
        MetricFacts(
            "ood_auroc", "AUROC of out-of-distribution detection", "AUROC", "0.5 is chance", better="higher"
        ),
        MetricFacts(
            "ood_fpr95",
            "out-of-distribution rows taken for known at 95% recall",
            "FPR95",
            "false alarms of a detector",
        ),
        MetricFacts(
            "ood_aupr",
            "average precision of known rows",
            "AUPR",
            "depends on how many are out of distribution",
            better="higher",
        ),
    )
}

#: What a table can say of the cost of methods; no scorecard has it.
COST_FACTS: dict[str, MetricFacts] = {
    facts.key: facts._replace(home="runs", instead="a table of runs has it when asked")
    for facts in (
        MetricFacts(
            "seconds", "seconds of training", "seconds", "wall-clock of training", percent=False,
            high=math.inf, decimals=1,
        ),
        MetricFacts(
            "parameters", "parameters learned", "parameters", "all that is learned, helpers included",
            percent=False, high=math.inf, decimals=0,
        ),
        MetricFacts(
            "ece_gain", "ECE gained per extra training", "ECE gain / extra training",
            "how much lower the ECE is, per training of the baseline spent on top", better="higher",
            low=-math.inf, high=math.inf,
        ),
    )
}  # fmt: skip

#: What is known about metrics of someone's own, by key; whoever meets one says so.
_OWN: dict[str, MetricFacts] = {}
_HOMES = ("card", "runs", "alone")
_SAID = ("title", "short", "meaning", "better", "percent", "low", "high")


def metric_facts(
    key: str, *, what: str = "metric", of: Literal["card", "runs", "alone"] = "alone"
) -> MetricFacts:
    """Return what is known about a metric.

    Args:
        key: Which.
        what: What a message calls it.
        of: Where it must be found: on scorecards (``"card"``), in tables of runs too (``"runs"``), or anywhere.

    Raises:
        SpecError: If no metric has this key; with the nearest. Or if the metric is
            known, but not found there; with where it is.

    Example:
        >>> metric_facts("eec")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: no metric 'eec'; did you mean 'ece'?
        >>> metric_facts("tace").title
        'thresholded adaptive classwise error'
    """
    table = {**FACTS, **EXTRA_FACTS, **ALONE_FACTS, **DETECTION_FACTS, **COST_FACTS, **_OWN}
    if key not in table:
        there = sorted(name for name, one in table.items() if _HOMES.index(one.home) <= _HOMES.index(of))
        look_up(key, table, what=what, hint=f"known: {', '.join(there)}.")
    facts = table[key]
    if _HOMES.index(facts.home) > _HOMES.index(of):
        place = "scorecard" if of == "card" else "table of runs"
        raise SpecError(f"{key!r} cannot be a {what}: no {place} has it; {facts.instead}.")
    return facts


def learn_facts(key: str, said: Mapping[str, Any]) -> MetricFacts:
    """Remember, for this process, what someone says about a metric of their own; the last word counts.

    Args:
        key: What it is called.
        said: Any of ``title``, ``short``, ``meaning``, ``better`` (``"lower"``, ``"higher"`` or ``"zero"``),
            ``percent``, ``low`` and ``high``. What is not said: lower is better, no percentage, no bounds.

    Returns:
        The facts.

    Raises:
        SpecError: If something else is said.

    Example:
        >>> learn_facts("hits", {"better": "higher", "percent": True}).head
        'hits %'
        >>> best_of("hits", [0.1, 0.2])
        0.2
    """
    for name in said:
        look_up(str(name), dict.fromkeys(_SAID), what=f"fact of the metric {key!r}")
    title = said.get("title", key)
    facts = MetricFacts(
        key, title, title, "", percent=False, low=-math.inf, high=math.inf, home="runs",
        instead="a table of the runs that were scored with it has it",
    )._replace(**said)  # fmt: skip
    check_choice(facts.better, ("lower", "higher", "zero"), where=key, name="better")
    if not isinstance(facts.percent, bool) or not facts.low < facts.high:
        raise SpecError(
            f"{key}: `percent` must be true or false, and `low` below `high`, got {facts.percent!r}, {facts.low!r} and "
            f"{facts.high!r}."
        )
    if not all(isinstance(text, str) for text in (facts.title, facts.short, facts.meaning)):
        raise SpecError(f"{key}: `title`, `short` and `meaning` must be text.")
    _OWN[key] = facts
    return facts


def metrics_where(**wanted: object) -> tuple[str, ...]:
    """Return the keys of the metrics with these facts, in the order they are printed.

    Example:
        >>> metrics_where(is_paired=True, needs_scores=True)
        ('nll', 'brier')
    """
    return tuple(
        key
        for key, facts in FACTS.items()
        if all(getattr(facts, name) == value for name, value in wanted.items())
    )


def columns() -> tuple[str, ...]:
    """Return the columns of a comparison, the most looked-for first.

    Example:
        >>> columns()[:4]
        ('accuracy', 'nll', 'brier', 'ece')
    """
    placed = [facts for facts in FACTS.values() if facts.column is not None]
    return tuple(facts.key for facts in sorted(placed, key=lambda facts: facts.column or 0))


def best_of(key: str, values: Iterable[float]) -> float:
    """Return the best of some values of a metric.

    Example:
        >>> best_of("accuracy", [0.8, 0.9]), best_of("ece", [0.1, 0.2]), best_of("confidence_gap", [-0.1, 0.3])
        (0.9, 0.1, -0.1)
    """
    return min(values, key=metric_facts(key).badness)
