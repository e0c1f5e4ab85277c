"""What is known about each metric of a scorecard, said once: its names, unit, range, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from equipoise.core.errors import SpecError
from equipoise.core.names import check_choice, look_up

__all__ = [
    "COST_FACTS",
    "EXTRA_FACTS",
    "FACTS",
    "MetricFacts",
    "best_of",
    "columns",
    "learn_facts",
    "metric_facts",
    "metrics_where",
]


class MetricFacts(NamedTuple):
    """One metric of a scorecard.

    Attributes:
        key: What programs and gates call it.
        title: What sentences call it.
        short: What tables call it.
        meaning: What it says, in a few words.
        better: Which way is better; ``"zero"`` for a signed number that is best at zero.
        percent: Whether it is a share, shown in percent.
        low: The smallest it can be, which its interval does not leave.
        high: The largest.
        is_error: Whether chance alone pushes it up from zero, where a calibrated model would be.
        is_paired: Whether two models are compared in it row by row.
        needs_scores: Whether it needs the scores of every class, not only the predicted class and its confidence.
        part_of: The metric it is a part of.
        column: Its place among the columns of a comparison, from 0; None if it has none.
        decimals: Digits after the point where it is shown; None for the usual number.

    Example:
        >>> ece = metric_facts("ece")
        >>> ece.title, ece.better, ece.text(0.031)
        ('ECE', 'lower', '3.10 %')
    """

    key: str
    title: str
    short: str
    meaning: str
    better: Literal["lower", "higher", "zero"] = "lower"
    percent: bool = True
    low: float = 0.0
    high: float = 1.0
    is_error: bool = False
    is_paired: bool = False
    needs_scores: bool = False
    part_of: str | None = None
    column: int | None = None
    decimals: int | None = None

    @property
    def label(self) -> str:
        """The name at the start of a table's row; parts stand indented below their whole."""
        return f"  {self.short}" if self.part_of else self.title

    @property
    def head(self) -> str:
        """The name on top of a table's column, with the unit."""
        return f"{self.short} %" if self.percent else self.short

    @property
    def scale(self) -> float:
        """What a value is multiplied by where it is shown."""
        return 100.0 if self.percent else 1.0

    @property
    def digits(self) -> int:
        """Digits after the point where it is shown."""
        return self.decimals if self.decimals is not None else 2 if self.percent else 4

    def number(self, value: float) -> str:
        """Return a value as it is shown, without unit; signed where the sign says something.

        Example:
            >>> metric_facts("confidence_gap").number(0.1), metric_facts("nll").number(0.25)
            ('+10.00', '0.2500')
        """
        sign = "+" if self.better == "zero" else ""
        return f"{self.scale * value:{sign}.{self.digits}f}"

    def text(self, value: float) -> str:
        """Return a value as it is shown, with its unit.

        Example:
            >>> metric_facts("accuracy").text(0.9), metric_facts("nll").text(0.25)
            ('90.00 %', '0.2500')
        """
        return f"{self.number(value)} %" if self.percent else self.number(value)

    def badness(self, value: float) -> float:
        """Return a number that is the lower the better, whichever way the metric itself goes.

        Example:
            >>> metric_facts("accuracy").badness(0.9), metric_facts("confidence_gap").badness(-0.1)
            (-0.9, 0.1)
        """
        if self.better == "zero":
            return abs(value)
        return value if self.better == "lower" else -value

    def is_better(self, value: float, than: float) -> bool:
        """Return whether one value is better than another.

        Example:
            >>> metric_facts("accuracy").is_better(0.9, than=0.8), metric_facts("ece").is_better(0.9, than=0.8)
            (True, False)
        """
        return self.badness(value) < self.badness(than)


def _error(key: str, title: str, meaning: str, *, short: str = "", **more: Any) -> MetricFacts:
    return MetricFacts(key, title, short or title, meaning, is_error=True)._replace(**more)


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
    _error("ece", "ECE", "mean gap between confidence and accuracy over bins", is_paired=True, column=3),
    _error(
        "ece_over",
        "over-confident part of the ECE",
        "where claims exceed outcomes",
        short="over-confident part",
        is_paired=True,
        part_of="ece",
    ),
    _error(
        "ece_under",
        "under-confident part of the ECE",
        "where outcomes exceed claims",
        short="under-confident part",
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
        "above zero: over-confident on average",
        better="zero",
        low=-1.0,
        is_paired=True,
    ),
    _error(
        "over_confidence_error",
        "over-confidence error",
        "over-confident gaps, each weighed by the confidence it was said with",
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
)

#: Every metric of a scorecard by key, in the order it is printed.
FACTS: dict[str, MetricFacts] = {facts.key: facts for facts in _ALL}

#: Metrics that no scorecard has by itself: they take long, or need more than rows.
EXTRA_FACTS: dict[str, MetricFacts] = {
    facts.key: facts
    for facts in (
        MetricFacts("kde_ece", "KDE-ECE", "KDE-ECE", "of the whole vector, by a Dirichlet kernel", high=2.0),
        MetricFacts("sece", "SECE", "SECE", "accuracy smoothed over confidence by a Gaussian kernel"),
        MetricFacts(
            "mean_iou",
            "mean intersection over union",
            "mIoU",
            "of segmentation, over classes",
            better="higher",
        ),
    )
}

#: What a table can say of the cost of methods; no scorecard has it.
COST_FACTS: dict[str, MetricFacts] = {
    facts.key: facts
    for facts in (
        MetricFacts(
            "seconds", "seconds of training", "seconds", "wall-clock of training", percent=False,
            high=math.inf, decimals=1,
        ),
        MetricFacts(
            "parameters", "parameters learnt", "parameters", "all that is learnt, helpers included",
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
_SAID = ("title", "short", "meaning", "better", "percent", "low", "high")

_FORMER = {
    "over_confidence": "the over-confident part of the ECE is 'ece_over'; the error of the paper is "
    "'over_confidence_error'.",
    "under_confidence": "the under-confident part of the ECE is 'ece_under'.",
}


def metric_facts(key: str, *, what: str = "metric") -> MetricFacts:
    """Return what is known about a metric.

    Args:
        key: Which.
        what: What a message calls it.

    Raises:
        SpecError: If no metric of a scorecard has this key; with the nearest, or what a former key is called now.

    Example:
        >>> metric_facts("eec")
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: no metric 'eec'; did you mean 'ece'?
    """
    if key in _FORMER:
        raise SpecError(f"no {what} {key!r}; {_FORMER[key]}")
    return look_up(key, {**FACTS, **EXTRA_FACTS, **COST_FACTS, **_OWN}, what=what)


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
    facts = MetricFacts(key, title, title, "", percent=False, low=-math.inf, high=math.inf)._replace(**said)
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
