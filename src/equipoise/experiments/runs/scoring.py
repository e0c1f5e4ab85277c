"""The scoring stage: fit each calibrator once, score what it gives, write everything that is read later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

from equipoise.calibrators import Calibrator
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError, SpecError
from equipoise.core.predictions import Predictions
from equipoise.core.writing import write_predictions
from equipoise.evaluate import EXTRA, Score, score, score_by_class, score_detection
from equipoise.experiments.build.data import fit_split
from equipoise.experiments.code.names import is_code
from equipoise.experiments.runs.folder import RunFolder, calibrated_name, calibrator_names
from equipoise.experiments.runs.rows import write_rows
from equipoise.experiments.runs.scores import RunScores, tidy_rows, write_scores
from equipoise.experiments.runs.segmentation import DENSE, image_clusters, with_all_pixels
from equipoise.experiments.runs.shift import set_name, shifts_of
from equipoise.experiments.specs.calibrators import MapSpec
from equipoise.experiments.specs.metrics import GivenMetric, MetricSpec, score_metric
from equipoise.metrics.clusters import find_clusters
from equipoise.metrics.row_draws import RowDraws, draw_rows
from equipoise.metrics.selective import risk_coverage

__all__ = ["ScoringSettings", "score_mapped", "score_plain", "score_run", "score_with_bins"]

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
        metrics: Numbers beyond the scorecard: ``"kde_ece"`` and ``"sece"``, which take the square of the rows in time,
            and metrics of one's own.

    Example:
        >>> ScoringSettings().n_resamples
        1000
    """

    n_bins: int = 15
    level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0
    closed: str = "right"
    metrics: tuple[MetricSpec | GivenMetric, ...] = ()

    def to_table(self) -> dict[str, Any]:
        """Return plain values, to write down and to pass on."""
        return {
            "n_bins": self.n_bins,
            "level": self.level,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "closed": self.closed,
            "metrics": sorted(one.mark for one in self.metrics),
        }

    @property
    def of_card(self) -> dict[str, Any]:
        """What a scorecard is made with."""
        return {key: value for key, value in self.to_table().items() if key != "metrics"}

    @property
    def of_draws(self) -> dict[str, Any]:
        """What shared resamples are made with."""
        return {
            "n_bins": self.n_bins, "closed": self.closed, "n_resamples": self.n_resamples, "seed": self.seed
        }  # fmt: skip

    @property
    def resampling(self) -> dict[str, Any]:
        """What intervals are made with where there are no bins."""
        return {"level": self.level, "n_resamples": self.n_resamples, "seed": self.seed}


def score_run(target: RunFolder, calibrators: Sequence[MapSpec], settings: ScoringSettings) -> None:
    """Score a run's predictions after each calibrator, unless that is done with the same settings.

    With other settings everything is scored again, calibrators of earlier commands included, so that all numbers of a
    run have the same settings behind them. Maps that were fitted are read, not fitted again, unless they are code that
    has changed. Numbers that code made which this command does not name are kept as long as nothing is scored again.

    Args:
        target: A run that is predicted.
        calibrators: Post-hoc maps beside no calibration.
        settings: Behind numbers and intervals.

    Raises:
        SpecError: If there are no rows to fit a map on.
    """
    wanted = {one.key: one for one in calibrators}
    known = _Known.of(target, settings)
    settings = known.settings
    stale = {key for key, one in wanted.items() if known.code.get(key, "") != one.digest}
    left = [name for name in known.code if name not in wanted]
    lost = {name for name in left if not (known.stands and _is_there(target, name, own=True))}
    names = ["identity", *sorted({*known.names, *wanted} - {"identity"} - lost)]
    if known.stands and known.names == names and not stale and target.is_done("scored"):
        return
    work = _Scoring(target, settings, wanted, stale)
    found = []
    for name in names:
        is_known = known.is_same and name not in stale and _is_there(target, name, own=name in known.code)
        scores = target.scores(name) if is_known else work.score(name)
        found.append(scores if not known.sets or (is_known and known.stands) else work.score_shifts(scores))
    target.clear_stages("scored")
    for scores in found:
        write_scores(scores, target.path / "scores" / f"{scores.calibrator}.json")
    write_rows(target.path / "scores.csv", tidy_rows(target.spec(), found))
    code = {name: wanted[name].digest if name in wanted else known.code.get(name, "") for name in names}
    code = {name: digest for name, digest in code.items() if digest}
    target.write_record(
        "scored",
        ["scores.csv", *(f"scores/{name}.json" for name in names), *_map_files(target, names[1:], code)],
        calibrators=names,
        settings=settings.to_table(),
        shift=known.sets,
        code=code,
    )


class _Known(NamedTuple):
    """What a run was scored with.

    Attributes:
        names: Calibrators, no calibration first.
        settings: What is to be scored with: as asked, with metrics of earlier commands that can be computed.
        is_same: Whether all numbers have these settings behind them.
        code: Digest of the code of each calibrator that is someone's own.
        sets: Files of further test sets that there are now.
        stands: Whether nothing needs to be scored again but what this command adds.
    """

    names: list[str]
    settings: ScoringSettings
    is_same: bool
    code: Mapping[str, str]
    sets: Mapping[str, str]
    stands: bool

    @classmethod
    def of(cls, target: RunFolder, settings: ScoringSettings) -> _Known:
        record = target.record("scored")
        files = target.manifest().files
        sets = {name: files[name]["sha256"] for name in (target.record("shifted") or {"files": []})["files"]}
        if record is None:
            return cls([], settings, False, {}, sets, False)
        before = record["settings"]["metrics"]
        marks = {one.mark for one in settings.metrics}
        more = [MetricSpec(name=mark) for mark in before if mark in EXTRA and mark not in marks]
        every = replace(settings, metrics=(*settings.metrics, *more))
        plain = {key: value for key, value in record["settings"].items() if key != "metrics"}
        is_same = plain == settings.of_card and marks <= set(before)
        return cls(
            target.calibrators(),
            every,
            is_same,
            record["code"],
            sets,
            is_same and record["shift"] == sets,
        )


def _is_there(target: RunFolder, name: str, *, own: bool) -> bool:
    has_map = name == "identity" or target.calibrator_file(name) is not None
    return has_map and target.has(f"scores/{name}.json") and (not own or target.has(calibrated_name(name)))


def _map_files(target: RunFolder, names: Iterable[str], code: Mapping[str, str]) -> Iterator[str]:
    for name in names:
        yield next(file for file in calibrator_names(name) if (target.path / file).exists())
        if name in code:
            yield calibrated_name(name)


@final
class _Scoring:
    """Predictions of one run, each split read once."""

    def __init__(
        self,
        target: RunFolder,
        settings: ScoringSettings,
        wanted: Mapping[str, MapSpec],
        stale: Collection[str],
    ) -> None:
        self._target, self._settings, self._wanted, self._stale = target, settings, wanted, stale
        self._known: dict[str, Predictions] = {}
        self._fitted_maps: dict[str, Calibrator] = {}
        self._mapped: dict[str, Predictions] = {}

    def _predictions(self, split: str) -> Predictions:
        if split not in self._known:
            self._known[split] = self._target.predictions(split)
        return self._known[split]

    def score(self, calibrator: str) -> RunScores:
        """Score ``test`` after a calibrator; without one ``tune`` and ``calib`` too."""
        if calibrator == "identity":
            splits = {split: self._predictions(split) for split in self._target.splits()}
            found = score_plain(splits, self._settings, clusters=image_clusters(*splits.values()))
            return with_all_pixels(found, self._target)
        after = self._clean(calibrator)
        if self._wanted_code(calibrator):
            # Tables compare methods after the map, and are made without its code.
            (self._target.path / calibrated_name(calibrator)).parent.mkdir(exist_ok=True)
            write_predictions(after, self._target.path / calibrated_name(calibrator))
        judged = self._predictions("test")
        return score_mapped(
            calibrator,
            judged,
            self._fitted(calibrator),
            self._settings,
            after=after,
            clusters=image_clusters(judged),
        )

    def _wanted_code(self, calibrator: str) -> MapSpec | None:
        wanted = self._wanted.get(calibrator)
        return wanted if wanted is not None and is_code(wanted.name) else None

    def score_shifts(self, scores: RunScores) -> RunScores:
        """Score further test sets, unless that is done; the map is the one that clean rows gave."""
        calibrator = scores.calibrator
        cards, detection = dict(scores.cards), dict(scores.detection)
        for name, shift in shifts_of(self._target).items():
            found = self._predictions(set_name(name))
            fitted = None if calibrator == "identity" else self._fitted(calibrator)
            after = found if fitted is None else fitted(found)
            if shift.kind == "ood":
                detection[name] = score_detection(
                    self._clean(calibrator), after, calibrator=fitted, **self._settings.resampling
                )
            else:
                cards[set_name(name)] = score(after, **self._settings.of_card)
        return replace(scores, cards=cards, detection=detection)

    def _clean(self, calibrator: str) -> Predictions:
        """Return ``test`` after a calibrator, mapped once; only the last calibrator's is kept."""
        if calibrator == "identity":
            return self._predictions("test")
        if calibrator not in self._mapped:
            self._mapped = {calibrator: self._fitted(calibrator)(self._predictions("test"))}
        return self._mapped[calibrator]

    def _fitted(self, calibrator: str) -> Calibrator:
        """Return the map of these predictions, read or fitted once."""
        if calibrator not in self._fitted_maps:
            self._fitted_maps[calibrator] = self._read_or_fit(calibrator)
        return self._fitted_maps[calibrator]

    def _read_or_fit(self, calibrator: str) -> Calibrator:
        own = self._wanted_code(calibrator)
        if self._target.calibrator_file(calibrator) is not None and calibrator not in self._stale:
            return self._target.calibrator(calibrator, own=None if own is None else own.make_own())
        split = fit_split(self._target.spec().data)
        if split not in self._target.splits():
            raise SpecError(
                f"{self._target.path}: the data have no {split!r} split to fit {calibrator!r} on. Use 'identity'."
            )
        wanted = self._wanted.get(calibrator) or MapSpec(name=calibrator)
        fitted: Calibrator = wanted.make().fit(self._predictions(split))
        (self._target.path / "calibrators").mkdir(exist_ok=True)
        small, large = (self._target.path / name for name in calibrator_names(calibrator))
        for old in (small, large):
            old.unlink(missing_ok=True)
        fitted.save(large if fitted.n_parameters(fitted.n_classes or 2) > _LARGE else small)
        return fitted


def score_with_bins(target: RunFolder, calibrator: str, n_bins: int) -> RunScores:
    """Score a finished run anew with another number of bins; nothing is written.

    Args:
        target: The run.
        calibrator: Key of a calibrator that it was scored after, or ``"identity"``.
        n_bins: Bins of the binned metrics.

    Raises:
        DataError: If the run is of segmentation: the pixels that its scores are of are not kept.
    """
    before = target.scores(calibrator)
    card = before.test
    if card.n_bins == n_bins:
        return before
    if target.has(DENSE):
        raise DataError(
            f"{target.path}: was scored by all pixels with {card.n_bins} bins, and only a sample of them is kept. "
            "Leave --bins out."
        )
    settings = ScoringSettings(
        n_bins=n_bins, closed=card.closed, level=card.level, n_resamples=card.n_resamples, seed=card.seed
    )
    rows = {split: target.calibrated(calibrator, split) for split in before.cards}
    if calibrator == "identity":
        found = score_plain(rows, settings)
        return replace(before, cards=found.cards, classes=found.classes, draws=found.draws)
    cards = {split: score(part, **settings.of_card) for split, part in rows.items()}
    return replace(before, cards=cards, draws=_draws(rows["test"], settings, None))


def score_plain(
    splits: Mapping[str, Predictions], settings: ScoringSettings, *, clusters: Any = None
) -> RunScores:
    """Score predictions as they are, on every split; classes and risk on ``test``.

    Args:
        splits: Predictions by split.
        settings: Behind numbers and intervals.
        clusters: Where rows depend on each other: the name of a column of groups that all splits have, or, if there is
            only ``test``, one value per row.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> score_plain({"test": rows}, ScoringSettings(n_resamples=20)).test.n_samples
        3
    """
    judged, table = splits["test"], settings.of_card
    cards = {split: score(part, clusters=clusters, **table) for split, part in splits.items()}
    found = cards["test"].clusters
    return RunScores(
        calibrator="identity",
        cards=cards,
        classes=score_by_class(
            judged,
            n_bins=settings.n_bins,
            closed=settings.closed,
            level=settings.level,
            inflation=1.0 if found is None else found.inflation(settings.level),
        ),
        risk=risk_coverage(judged),
        draws=_draws(judged, settings, clusters),
        extras=_extras(judged, settings, clusters),
        facts=_said(settings),
    )


def score_mapped(
    calibrator: str,
    judged: Predictions,
    fitted: Calibrator,
    settings: ScoringSettings,
    *,
    after: Predictions | None = None,
    clusters: Any = None,
) -> RunScores:
    """Score what a fitted map makes of predictions.

    Args:
        calibrator: What the map is called.
        judged: The predictions.
        fitted: The map.
        settings: Behind numbers and intervals.
        after: What the map makes of them, if that is known already.
        clusters: Where rows depend on each other: one value per row, or the name of a column of groups.

    Example:
        >>> from equipoise.calibrators import TemperatureScaling
        >>> rows = Predictions(logits=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> fitted = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> score_mapped("temperature", rows, fitted, ScoringSettings(n_resamples=20)).test.n_samples
        3
    """
    table = settings.of_card
    after = fitted(judged) if after is None else after
    temperature = fitted.result.parameters.get("temperature")
    return RunScores(
        calibrator=calibrator,
        words=fitted.result.words,
        warnings=fitted.result.warnings,
        kind=fitted.kind,
        temperature=None if temperature is None else float(temperature),
        cards={"test": score(after, clusters=clusters, **table)},
        draws=_draws(after, settings, clusters),
        extras=_extras(after, settings, clusters),
        facts=_said(settings),
    )


def _draws(judged: Predictions, settings: ScoringSettings, clusters: Any) -> RowDraws:
    codes = None if clusters is None else find_clusters(clusters, judged, where="score").codes
    return draw_rows(judged, ScoreSettings(**settings.of_draws), clusters=codes)


def _extras(judged: Predictions, settings: ScoringSettings, clusters: Any) -> dict[str, Score]:
    return {
        one.key: score_metric(one, judged, level=settings.level, seed=settings.seed, clusters=clusters)
        for one in settings.metrics
    }


def _said(settings: ScoringSettings) -> dict[str, dict[str, Any]]:
    """Return what authors say about metrics of their own, so that tables need not ask the code."""
    return {one.key: said for one in settings.metrics if (said := one.load()[1])}
