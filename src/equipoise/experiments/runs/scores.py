"""What a run scored after one calibrator: written once, then read by tables, reports and comparisons."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from equipoise.core.errors import DataError
from equipoise.evaluate import Score, Scorecard, Slice
from equipoise.evaluate.standard_error import one_run_error
from equipoise.experiments.runs.json_files import NUMBER, check_content, read_json, write_json
from equipoise.experiments.specs.run import Spec
from equipoise.metrics.facts import learn_facts
from equipoise.metrics.row_draws import ResamplePlan, RowDraws
from equipoise.metrics.selective import RiskCoverage

__all__ = [
    "RunScores",
    "is_auto",
    "pack_draws",
    "read_scores",
    "set_name",
    "tidy_rows",
    "unpack_draws",
    "write_scores",
]

_KEPT = ("metric", "value", "low", "high", "p_value", "n_samples", "n_bins", "closed", "level", "n_resamples")
_NUMBER_OR_NONE = (*NUMBER, type(None))
_CARD = {
    "scores": {
        str: {"value": NUMBER, "low": _NUMBER_OR_NONE, "high": _NUMBER_OR_NONE, "p_value?": _NUMBER_OR_NONE}
    },
    "missing": {str: str},
    "notes": [str],
    "cautions?": [dict],
}
#: What a file of scores holds, as :func:`check_content` reads it.
_CONTENT = {
    "calibrator": str,
    "words": str,
    "warnings?": [str],
    "kind?": str,
    "temperature": _NUMBER_OR_NONE,
    "cards": dict,
    "classes": [list],
    "risk": (list, type(None)),
    "draws": (dict, type(None)),
    "extras?": {str: [_NUMBER_OR_NONE]},
    "facts?": {str: dict},
    "detection?": {str: {str: {str: [_NUMBER_OR_NONE]}}},
}
#: Points of a risk curve that are kept: more than a figure shows.
_POINTS = 400


@final
@dataclass(frozen=True, kw_only=True)
class RunScores:
    """Everything that was found out about a run's predictions after one calibrator.

    Attributes:
        calibrator: Key of the post-hoc map; ``"identity"`` is none.
        words: What the calibrator found, as a sentence.
        warnings: What the fit warned of.
        kind: Kind of the fitted calibrator: for ``"auto"`` the calibrator that the advisor chose.
        temperature: The number logits are divided by, for maps that have one.
        cards: Scorecards by split; ``test`` is always there.
        classes: Slices of ``test`` by predicted class, the worst first; without calibration only.
        risk: Error rate of ``test`` by coverage; without calibration only.
        draws: Metrics of ``test`` in resamples of the rows that all runs of these rows share; None if not computed.
        extras: Numbers of ``test`` beyond the scorecard, such as the mean intersection over union.
        facts: What authors say about metrics of their own among the extras; those who read it know it then, too.
        detection: Detection of out-of-distribution test sets, by set, score of the network and number.
    """

    calibrator: str
    words: str = ""
    warnings: tuple[str, ...] = ()
    kind: str = ""
    temperature: float | None = None
    cards: Mapping[str, Scorecard]
    classes: tuple[Slice, ...] = ()
    risk: RiskCoverage | None = None
    draws: RowDraws | None = None
    extras: Mapping[str, Score] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    detection: Mapping[str, Mapping[str, Mapping[str, Score]]] = field(default_factory=dict)

    @property
    def test(self) -> Scorecard:
        """The scorecard that judges."""
        return self.cards["test"]

    def score(self, metric: str) -> Score:
        """Return a number of ``test``, of the scorecard or beyond it."""
        return self.extras[metric] if metric in self.extras else self.test[metric]

    @property
    def compared(self) -> tuple[str, ...]:
        """Metrics in which runs of the same rows are compared, whatever a table shows."""
        return () if self.draws is None else tuple(self.draws.values)

    def row_error(self, metric: str) -> float:
        """Return the standard error of a number of ``test`` that its rows give."""
        return one_run_error(self.score(metric), self.test.level)

    def value(self, metric: str) -> float:
        """Return the value of a number of ``test``; NaN if there is none."""
        known = metric in self.extras or metric in self.test.scores
        return self.score(metric).value if known else np.nan

    def rows(self) -> list[dict[str, Any]]:
        """Return one tidy row per split and metric, with the settings behind the intervals."""
        about = {
            "calibrator": self.calibrator,
            "temperature": self.temperature,
            "words": self.words,
            "warnings": "; ".join(self.warnings),
        }
        return (
            [
                {**about, "split": split, **{key: row[key] for key in _KEPT}, "resample_seed": card.seed}
                for split, card in self.cards.items()
                for row in card.rows()
            ]
            + [
                {**about, "split": "test", "metric": key, **number._asdict()}
                for key, number in self.extras.items()
            ]
            + [
                {**about, "split": f"test-{name}", "metric": f"{key}_{score}", **number._asdict()}
                for name, scores in self.detection.items()
                for score, numbers in scores.items()
                for key, number in numbers.items()
            ]
        )


def set_name(name: str) -> str:
    """Return the split of an additional test set.

    Example:
        >>> set_name("svhn")
        'test-svhn'
    """
    return f"test-{name}"


def is_auto(calibrator: str) -> bool:
    """Return whether a calibrator of this key was chosen by the advisor.

    Example:
        >>> is_auto("auto(rule=best)"), is_auto("temperature")
        (True, False)
    """
    return calibrator.partition("(")[0] == "auto"


def tidy_rows(spec: Spec, scores: Iterable[RunScores]) -> list[dict[str, Any]]:
    """Return the scores of a run as tidy rows, each saying which run it is of."""
    about = {
        "run": spec.identity,
        "data": spec.data.name,
        "model": spec.model.name,
        "method": spec.method.label,
        "seed": spec.seed,
    }
    return [{**about, **row} for part in scores for row in part.rows()]


def write_scores(scores: RunScores, path: Path) -> None:
    """Write what was found, all or nothing; numbers keep every digit."""
    risk = scores.risk
    write_json(
        path,
        {
            "calibrator": scores.calibrator,
            "words": scores.words,
            "warnings": list(scores.warnings),
            "kind": scores.kind,
            "temperature": scores.temperature,
            "cards": {split: card.to_dict() for split, card in scores.cards.items()},
            "classes": [list(part) for part in scores.classes],
            "risk": None if risk is None else [np.asarray(column)[_thin(risk)].tolist() for column in risk],
            "draws": None if scores.draws is None else pack_draws(scores.draws),
            "extras": {key: list(one) for key, one in scores.extras.items()},
            **({"facts": {key: dict(said) for key, said in scores.facts.items()}} if scores.facts else {}),
            "detection": {
                name: {
                    score: {key: list(one) for key, one in numbers.items()} for score, numbers in part.items()
                }
                for name, part in scores.detection.items()
            },
        },
    )


def read_scores(path: Path) -> RunScores:
    """Read what :func:`write_scores` wrote.

    Raises:
        DataError: If the file holds anything else.

    Example:
        >>> read_scores(Path("nowhere.json"))
        Traceback (most recent call last):
        ...
        equipoise.core.errors.DataError: nowhere.json: damaged: cannot be read (No such file or directory).
    """
    content = read_json(path)
    check_content(content, _CONTENT, where=str(path))
    check_content(content["cards"], {"test": dict}, where=str(path), key="cards")
    check_content(content["cards"], {str: _CARD}, where=str(path), key="cards")
    try:
        risk, draws, facts = content["risk"], content["draws"], content.get("facts", {})
        for key, said in facts.items():
            learn_facts(key, said)
        return RunScores(
            calibrator=content["calibrator"],
            words=content["words"],
            warnings=tuple(content.get("warnings", ())),
            kind=content.get("kind", ""),
            temperature=content["temperature"],
            cards={split: Scorecard.from_dict(table) for split, table in content["cards"].items()},
            classes=tuple(Slice(*part) for part in content["classes"]),
            risk=None if risk is None else RiskCoverage(*map(np.asarray, risk)),
            draws=None if draws is None else unpack_draws(draws),
            extras={key: Score(*one) for key, one in content.get("extras", {}).items()},
            facts=facts,
            detection={
                name: {
                    score: {key: Score(*one) for key, one in numbers.items()}
                    for score, numbers in part.items()
                }
                for name, part in content.get("detection", {}).items()  # scores of old have none
            },
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{path}: damaged: no scores of a run ({type(error).__name__} {error}).") from error


def pack_draws(draws: RowDraws) -> dict[str, Any]:
    """Return draws as JSON can hold them: thousands of numbers per metric, in single precision."""
    packed = {
        key: b64encode(np.asarray(column, dtype="<f4").tobytes()).decode()
        for key, column in draws.draws.items()
    }
    return {"plan": draws.plan._asdict(), "values": dict(draws.values), "draws": packed}


def unpack_draws(content: Mapping[str, Any]) -> RowDraws:
    """Return the draws that :func:`pack_draws` made a table of."""
    draws = {
        key: np.frombuffer(b64decode(text, validate=True), dtype="<f4")
        for key, text in content["draws"].items()
    }
    if len({len(column) for column in draws.values()}) > 1 or not all(
        np.isfinite(column).all() for column in draws.values()
    ):
        raise ValueError("draws must be finite and of one length")
    return RowDraws(content["values"], draws, ResamplePlan(**content["plan"]))


def _thin(risk: RiskCoverage) -> Any:
    last = len(risk.coverage) - 1
    return np.unique(np.linspace(0, last, min(_POINTS, last + 1)).round().astype(int))
