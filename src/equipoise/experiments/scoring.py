"""The scoring stage: fit each calibrator once, score what it gives, write everything that is read later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from equipoise.calibrators import Calibrator
from equipoise.core.errors import SpecError
from equipoise.core.predictions import Predictions
from equipoise.evaluate import Score, compare, score, score_by_class, score_detection, score_extra
from equipoise.experiments.dense import dense_cards, dense_extras
from equipoise.experiments.folder import RunFolder
from equipoise.experiments.maps import MapSpec
from equipoise.experiments.rows import write_rows
from equipoise.experiments.scores import RunScores, tidy_rows, write_scores
from equipoise.experiments.shifted import set_name, shifts_of
from equipoise.metrics.area_under_risk_coverage import risk_coverage

__all__ = ["ScoringSettings", "score_mapped", "score_plain", "score_run"]

# Maps of more numbers are kept as binary files.
_LARGE = 10_000


@final
@dataclass(frozen=True, kw_only=True)
class ScoringSettings:
    """What the numbers and intervals of a scorecard depend on.

    Attributes:
        n_bins: Bins of the binned metrics.
        level: Level of the intervals.
        n_resamples: Resamples behind them.
        seed: Of the resamples.
        closed: Which side of a bin belongs to it.
        metrics: Errors beyond the scorecard: ``"kde_ece"`` and ``"sece"``; they take the square of the rows in time.

    Example:
        >>> ScoringSettings().n_resamples
        1000
    """

    n_bins: int = 15
    level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0
    closed: str = "right"
    metrics: tuple[str, ...] = ()

    def to_table(self) -> dict[str, Any]:
        """Return plain values, to write down and to pass on."""
        return {
            "n_bins": self.n_bins,
            "level": self.level,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            # Later than the others: runs that were scored before they came are not scored again.
            **({} if self.closed == "right" else {"closed": self.closed}),
            **({"metrics": list(self.metrics)} if self.metrics else {}),
        }

    @property
    def of_card(self) -> dict[str, Any]:
        """What a scorecard is made with."""
        return {key: value for key, value in self.to_table().items() if key != "metrics"}

    @property
    def resampling(self) -> dict[str, Any]:
        """What intervals are made with where there are no bins."""
        return {"level": self.level, "n_resamples": self.n_resamples, "seed": self.seed}


def score_run(target: RunFolder, calibrators: Sequence[MapSpec], settings: ScoringSettings) -> None:
    """Score a run's predictions after each calibrator, unless that is done with the same settings.

    With other settings everything is scored again, calibrators of earlier commands included, so that all numbers of a
    run have the same settings behind them. Maps that were fitted are read, not fitted again.

    Args:
        target: A run that is predicted.
        calibrators: Post-hoc maps beside no calibration.
        settings: Behind numbers and intervals.

    Raises:
        SpecError: If there are no rows to fit a map on.
    """
    record = target.record("scored")
    before = [] if record is None else target.calibrators()
    wanted = {one.key: one for one in calibrators}
    names = ["identity", *sorted({*before, *wanted} - {"identity"})]
    asked = [] if record is None else record["settings"].get("metrics", [])
    settings = replace(settings, metrics=tuple(sorted({*asked, *settings.metrics})))
    same = record is not None and record["settings"] == settings.to_table()
    sets = (target.record("shifted") or {"files": {}})["files"]
    is_known = same and record is not None and record.get("shift", {}) == sets
    if is_known and before == names and target.is_over("scored"):
        return
    work = _Scoring(target, settings, wanted)
    found = [target.scores(name) if same and _is_there(target, name) else work.score(name) for name in names]
    if sets:
        found = [work.score_shifts(one) for one in found]
    (target.path / "scored.json").unlink(missing_ok=True)
    for scores in found:
        write_scores(scores, target.path / "scores" / f"{scores.calibrator}.json")
    write_rows(target.path / "scores.csv", tidy_rows(target.spec(), found))
    files = [f"scores/{name}.json" for name in names] + [_map_name(target, name) for name in names[1:]]
    target.write_record(
        "scored", ["scores.csv", *files], calibrators=names, settings=settings.to_table(), shift=sets
    )


def _is_there(target: RunFolder, name: str) -> bool:
    return target.has(f"scores/{name}.json") and (name == "identity" or target.map_name(name) is not None)


def _map_name(target: RunFolder, calibrator: str) -> str:
    [file] = (target.path / "calibrators").glob(f"{calibrator}.*")
    return f"calibrators/{file.name}"


@final
class _Scoring:
    """Predictions of one run, each split read once."""

    def __init__(self, target: RunFolder, settings: ScoringSettings, wanted: Mapping[str, MapSpec]) -> None:
        self._target, self._settings, self._wanted = target, settings, wanted
        self._known: dict[str, Predictions] = {}
        self._fitted_maps: dict[str, Calibrator] = {}

    def _predictions(self, split: str) -> Predictions:
        if split not in self._known:
            self._known[split] = self._target.predictions(split)
        return self._known[split]

    def score(self, calibrator: str) -> RunScores:
        """Score ``test`` after a calibrator; without one ``tune`` and ``calib`` too."""
        if calibrator == "identity":
            splits = {split: self._predictions(split) for split in self._target.splits()}
            found = score_plain(splits, self._settings)
            return replace(
                found,
                cards={**found.cards, **dense_cards(self._target)},
                extras={**dense_extras(self._target), **found.extras},
            )
        return score_mapped(calibrator, self._predictions("test"), self._fitted(calibrator), self._settings)

    def score_shifts(self, scores: RunScores) -> RunScores:
        """Score further test sets, unless that is done; the map is the one that clean rows gave."""
        is_plain = scores.calibrator == "identity"
        cards, detection = dict(scores.cards), dict(scores.detection)
        for name, shift in shifts_of(self._target).items():
            found = self._predictions(set_name(name))
            after = found if is_plain else self._fitted(scores.calibrator)(found)
            if shift.kind == "ood":
                known = self._predictions("test")
                clean = known if is_plain else self._fitted(scores.calibrator)(known)
                detection[name] = score_detection(clean, after, **self._settings.resampling)
            else:
                cards[set_name(name)] = score(after, **self._settings.of_card)
        return replace(scores, cards=cards, detection=detection)

    def _fitted(self, calibrator: str) -> Calibrator:
        """Return the map of these predictions, read or fitted once."""
        if calibrator not in self._fitted_maps:
            self._fitted_maps[calibrator] = self._read_or_fit(calibrator)
        return self._fitted_maps[calibrator]

    def _read_or_fit(self, calibrator: str) -> Calibrator:
        if self._target.map_name(calibrator) is not None:
            return self._target.calibrator(calibrator)
        if "calib" not in self._target.splits():
            raise SpecError(
                f"{self._target.path}: the data have no 'calib' split to fit {calibrator!r} on. Use 'identity'."
            )
        wanted = self._wanted.get(calibrator) or MapSpec(name=calibrator)
        fitted: Calibrator = wanted.make().fit(self._predictions("calib"))
        folder = self._target.path / "calibrators"
        folder.mkdir(exist_ok=True)
        for old in folder.glob(f"{calibrator}.*"):
            old.unlink()
        large = fitted.n_parameters(fitted.n_classes or 2) > _LARGE
        fitted.save(Path(folder) / f"{calibrator}{'.safetensors' if large else '.json'}")
        return fitted


def score_plain(splits: Mapping[str, Predictions], settings: ScoringSettings) -> RunScores:
    """Score predictions as they are, on every split; classes and risk on ``test``.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> score_plain({"test": rows}, ScoringSettings(n_resamples=20)).test.n_samples
        3
    """
    judged, table = splits["test"], settings.of_card
    return RunScores(
        calibrator="identity",
        cards={split: score(part, **table) for split, part in splits.items()},
        classes=score_by_class(judged, n_bins=settings.n_bins, level=settings.level),
        risk=risk_coverage(judged),
        extras=_extras(judged, settings),
    )


def score_mapped(
    calibrator: str, judged: Predictions, fitted: Calibrator, settings: ScoringSettings
) -> RunScores:
    """Score what a fitted map makes of predictions, and compare it with them row by row.

    Example:
        >>> from equipoise.calibrators import TemperatureScaling
        >>> rows = Predictions(logits=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> fitted = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> found = score_mapped("temperature", rows, fitted, ScoringSettings(n_resamples=20))
        >>> found.versus.of("accuracy").verdict
        'tie'
    """
    table = settings.of_card
    after, temperature = fitted(judged), fitted.result.parameters.get("temperature")
    return RunScores(
        calibrator=calibrator,
        words=fitted.result.words,
        temperature=None if temperature is None else float(temperature),
        cards={"test": score(after, **table)},
        versus=compare(judged, after, **table),
        extras=_extras(after, settings),
    )


def _extras(judged: Predictions, settings: ScoringSettings) -> dict[str, Score]:
    return {
        key: score_extra(judged, key, level=settings.level, seed=settings.seed) for key in settings.metrics
    }
