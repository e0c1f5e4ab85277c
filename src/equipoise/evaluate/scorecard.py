"""The scorecard: every number about one set of predictions, with its interval, and how it is written."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple, final

from equipoise.core.errors import DataError, SpecError, first_line
from equipoise.core.frames import to_frame
from equipoise.core.predictions import Predictions
from equipoise.core.tables import Table
from equipoise.evaluate.cautions import Caution, input_mistakes
from equipoise.evaluate.record_checks import check_card
from equipoise.evaluate.verdict import Verdict, both_words, verdict_of_card, views_of_card
from equipoise.metrics.clusters import Clusters
from equipoise.metrics.consistency import ConsistencyTest
from equipoise.metrics.curve import ReliabilityCurve
from equipoise.metrics.facts import metric_facts, metrics_where
from equipoise.metrics.target import TOP, Target, target_facts

__all__ = ["Score", "Scorecard", "circumstances", "describe_card", "remarks", "score_cells", "unknown_words"]

_FORMAT = 1
#: What curves call the targets.
_CURVES = {"top": "top_label", "positive": "positive", "classwise": "classwise"}
_SETTINGS = (
    "n_samples",
    "n_classes",
    "split",
    "n_bins",
    "closed",
    "level",
    "n_resamples",
    "seed",
    "fingerprint",
)


class Score(NamedTuple):
    """One number with its interval; ``float`` of it is the number.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end.
        p_value: For calibration errors: how often a calibrated model with the same confidences scores as high.

    Example:
        >>> float(Score(0.03, 0.02, 0.04))
        0.03
    """

    value: float
    low: float
    high: float
    p_value: float | None = None

    def __float__(self) -> float:
        return self.value


@final
@dataclass(frozen=True, eq=False, repr=False)
class Scorecard:
    """Every metric of one set of predictions, with intervals.

    ``card["ece"]`` is a score, ``for key in card`` goes over what is known, ``dict(card)`` holds all of it.

    Attributes:
        scores: Scores by key.
        missing: What could not be computed, and why.
        notes: Sentences a reader should know.
        curve: The reliability curve of the target.
        consistency: Whether a calibrated model could score this ECE by chance.
        n_samples: Number of rows.
        n_classes: Number of classes, if known.
        split: The split they are from, if said.
        n_bins: Bins of the binned metrics.
        closed: Which side of a bin belongs to it.
        level: Level of the intervals.
        n_resamples: Resamples behind the intervals.
        seed: Seed of the resamples.
        identity: Which rows these were: the rows themselves, or their fingerprint; empty for a stream.
        cautions: Signs that the input is not what it is called; they are printed first.
        clusters: The clusters that were resampled; None if rows were.
        n_dropped: How many rows were left out when the file was read, because of missing values.
        target: What is judged; by default the predicted class.
        event: The scorecard of the probability of class 1, where two classes have clearly unequal frequencies and no
            target was named: the predicted class then says little about that probability. None otherwise.

    Example:
        >>> from equipoise import Predictions, score
        >>> card = score(Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1]), n_resamples=50)
        >>> card
        Scorecard(n=3, k=2, accuracy=100.00%, nll=0.2284, ece=20.00%)
        >>> card["eec"]
        Traceback (most recent call last):
        ...
        equipoise.core.errors.SpecError: no metric 'eec'; did you mean 'ece'?
    """

    scores: Mapping[str, Score]
    missing: Mapping[str, str]
    notes: tuple[str, ...]
    curve: ReliabilityCurve
    consistency: ConsistencyTest
    n_samples: int
    n_classes: int | None
    split: str | None
    n_bins: int
    closed: str
    level: float
    n_resamples: int
    seed: int
    identity: Predictions | str
    cautions: tuple[Caution, ...] = ()
    clusters: Clusters | None = None
    n_dropped: int = 0
    target: Target = TOP
    event: Scorecard | None = None

    @property
    def fingerprint(self) -> str:
        """A short text that identifies the rows, computed on first use, which releases the rows; empty for a stream."""
        if not isinstance(self.identity, str):
            object.__setattr__(self, "identity", self.identity.fingerprint)
        return str(self.identity)

    def __getstate__(self) -> dict[str, Any]:
        _ = self.fingerprint  # copies hold no rows
        return dict(self.__dict__)

    def __getitem__(self, key: str) -> Score:
        if key in self.scores:
            return self.scores[key]
        facts = metric_facts(key)
        raise SpecError(f"Scorecard: {facts.title} is not known here: {self.why_missing(key)}.")

    def why_missing(self, key: str) -> str:
        """Return why a metric is not on this card, and which one judges the same here, if there is one."""
        facts = metric_facts(key)
        why = self.missing.get(key) or facts.absence or "it was not scored"
        if facts.only_confidence and key not in self.missing:
            return "the scores of every class are known, and 'nll' and 'brier' judge them"
        if f"correct_{key}" in self.scores:
            return f"{why}; 'correct_{key}' judges the confidence as the probability of being right"
        return why

    @property
    def verdict(self) -> Verdict:
        """Whether the confidence can be believed, in words.

        Example:
            >>> from equipoise import Predictions, score
            >>> score(Predictions(probs=[0.9] * 50, labels=[1] * 25 + [0] * 25)).verdict.kind
            'over'
        """
        return verdict_of_card(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __contains__(self, key: object) -> bool:
        return key in self.scores

    def keys(self) -> KeysView[str]:
        """Return the keys of what is known."""
        return self.scores.keys()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; :meth:`from_dict` reads them back without loss.

        Example:
            >>> from equipoise import Predictions, score
            >>> card = score(Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1]), n_resamples=50)
            >>> sorted(card.to_dict())
            ['bins', 'cautions', 'consistency', 'format', 'missing', 'notes', 'scores', 'settings', 'target']
            >>> sorted(card.to_dict()["scores"]["ece"])
            ['high', 'low', 'p_value', 'value']
        """
        return {
            "format": _FORMAT,
            "settings": {name: getattr(self, name) for name in _SETTINGS},
            "scores": {key: value._asdict() for key, value in self.scores.items()},
            "missing": dict(self.missing),
            "consistency": self.consistency._asdict(),
            "bins": self.curve.to_list(),
            "notes": list(self.notes),
            "cautions": [caution._asdict() for caution in self.cautions],
            "target": self.target._asdict(),
            **({} if self.clusters is None else {"clusters": self.clusters._asdict()}),
            **({"n_dropped": self.n_dropped} if self.n_dropped else {}),
            **({} if self.event is None else {"event": self.event.to_dict()}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Scorecard:
        """Return the scorecard that :meth:`to_dict` described.

        Raises:
            DataError: If the values are no scorecard, or one of another version.

        Example:
            >>> from equipoise import Predictions, score
            >>> card = score(Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1]), n_resamples=50)
            >>> Scorecard.from_dict(card.to_dict())["ece"] == card["ece"]
            True
        """
        found = content.get("format") if isinstance(content, Mapping) else content
        if type(found) is not int or found != _FORMAT:
            raise DataError(
                f"Scorecard.from_dict: expected a scorecard of format {_FORMAT}, got {reprlib.repr(found)[:60]}. "
                "Score the predictions again."
            )
        try:
            settings = {name: content["settings"][name] for name in _SETTINGS}
            identity = settings.pop("fingerprint")
            clusters, event = content.get("clusters"), content.get("event")
            target = (
                Target(*(content["target"][name] for name in Target._fields)) if "target" in content else TOP
            )
            card = cls(
                scores={key: Score(**one) for key, one in content["scores"].items()},
                missing=dict(content["missing"]),
                notes=tuple(content["notes"]),
                cautions=input_mistakes(Caution(**one) for one in content.get("cautions", ())),
                curve=ReliabilityCurve.from_list(
                    content["bins"], target=_CURVES.get(target.kind, ""), closed=settings["closed"]
                ),
                consistency=ConsistencyTest(**content["consistency"]),
                clusters=None if clusters is None else Clusters(**clusters),
                n_dropped=content.get("n_dropped", 0),
                target=target,
                event=None if event is None else cls.from_dict(event),
                identity=identity,
                **settings,
            )
            check_card(card)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise DataError(
                f"Scorecard.from_dict: these values are not a complete scorecard ({first_line(error)}). "
                "Score the predictions again."
            ) from error
        return card

    def rows(self) -> list[dict[str, Any]]:
        """Return one tidy row per metric, ready for a data frame.

        Example:
            >>> from equipoise import Predictions, score
            >>> card = score(Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1]), n_resamples=50)
            >>> card.rows()[0]["metric"]
            'accuracy'
        """
        context = {
            "target": self.target.label,
            "split": self.split,
            "n_samples": self.n_samples,
            "n_bins": self.n_bins,
            "closed": self.closed,
            "level": self.level,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
        }
        return [{"metric": key, **s._asdict(), **context} for key, s in self.scores.items()]

    def to_frame(self) -> Any:
        """Return the scores as a pandas DataFrame, one row per metric.

        Raises:
            MissingExtraError: If pandas is not installed.

        Example:
            >>> from equipoise import Predictions, score
            >>> card = score(Predictions(probs=[0.9, 0.2, 0.7], labels=[1, 0, 1]), n_resamples=50)
            >>> card.to_frame().set_index("metric")["value"]["accuracy"]
            np.float64(1.0)
        """
        return to_frame(self.rows())

    def __str__(self) -> str:
        return describe_card(self)

    def __repr__(self) -> str:
        about = [f"n={self.n_samples}", *([f"k={self.n_classes}"] if self.n_classes else [])]
        about += [f"split={self.split}"] if self.split else []
        about += [] if self.target.kind == "top" else [f"target={self.target.label}"]
        main = [key for key in metrics_where(is_main=True) if key in self.scores]
        about += [f"{key}={metric_facts(key).text(self.scores[key].value)}" for key in main]
        return f"Scorecard({', '.join(about)})"

    def _repr_html_(self) -> str:
        return html_of_card(self)


#: How the reason begins why a metric is left out for a target.
NOT_OF_TARGET = "it is about"


def describe_card(card: Scorecard) -> str:
    """Return the whole scorecard as text."""
    lines = [f"Scorecard of {circumstances(card)}", ""]
    lines += [f"  Warning: {caution.text}\n" for caution in card.cautions]
    if card.event is not None:
        lines += [f"  {words}" for words in (*map(str, views_of_card(card)), both_words(card))]
        lines += ["", "  Predicted class:"]
    lines.append(Table.of(("", "", ""), score_cells(card), align="lrl").to_text(indent=2))
    lines += [] if card.event is not None else ["", f"  {card.verdict}"]
    lines += [f"  Note: {remark}" for remark in remarks(card)]
    return "\n".join(lines)


def html_of_card(card: Scorecard) -> str:
    """Return the scorecard as a notebook shows it."""
    heads = ("", "value", f"{100 * card.level:g}% interval")
    warnings = "".join(f"<p>Warning: {escape(caution.text)}</p>" for caution in card.cautions)
    clusters = "" if card.clusters is None else f". {card.clusters.sentence(card.n_samples)}"
    views = " ".join((*map(str, views_of_card(card)), both_words(card))).strip()
    caption = f"Scorecard of {_rows(card)}{clusters}"
    return warnings + Table.of(heads, score_cells(card), caption=caption, notes=(views,)).to_html()


def circumstances(card: Scorecard) -> str:
    """Return what was scored and how, in two lines; in three if clusters were resampled."""
    clusters = "" if card.clusters is None else f"\n{card.clusters.sentence(card.n_samples)}"
    return (
        f"{_rows(card)}\n{card.n_bins} bins, {card.closed}-closed; {100 * card.level:g}% intervals from "
        f"{card.n_resamples} resamples, seed {card.seed}{clusters}"
    )


def _rows(card: Scorecard) -> str:
    classes = f", {card.n_classes} classes" if card.n_classes else ""
    split = f", split {card.split}" if card.split else ""
    of = {"top": "", "positive": f"; {card.target.label} is judged", "classwise": "; every class is judged"}
    return f"{card.n_samples:,} rows{classes}{split}{of[card.target.kind]}"


def score_cells(card: Scorecard) -> list[tuple[str, str, str]]:
    """Return label, value and interval of every score, as text."""
    cells = []
    for key, score in card.scores.items():
        facts = target_facts(key, card.target)
        unit = "%" if facts.percent else " "
        ends = f"[{facts.number(score.low)}, {facts.number(score.high)}]"
        cells.append((facts.label, facts.number(score.value) + unit, ends))
    return cells


def remarks(card: Scorecard) -> list[str]:
    """Return the notes of a scorecard, and what is not known."""
    return [*card.notes, *unknown_words(card)]


def unknown_words(card: Scorecard) -> list[str]:
    """Say what is not known, a sentence for each reason; pages and terminals say the same."""
    found = []
    for why in dict.fromkeys(card.missing.values()):
        if why.startswith(NOT_OF_TARGET):
            continue
        names = ", ".join(
            target_facts(key, card.target).title for key in card.missing if card.missing[key] == why
        )
        found.append(f"Not known: {names} ({why}).")
    return found
