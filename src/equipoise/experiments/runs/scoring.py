"""The scoring stage: fit each calibrator once, score, and write everything that is read later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

from equipoise.calibrators import Calibrator
from equipoise.core.choices import ScoreSettings
from equipoise.core.errors import DataError, SpecError
from equipoise.core.predictions import Predictions
from equipoise.core.writing import write_predictions
from equipoise.evaluate import EXTRA, Score, score, score_by_class, score_detection
from equipoise.experiments.code.component import Component
from equipoise.experiments.runs.folder import RunFolder, calibrated_name, calibrator_names
from equipoise.experiments.runs.rows import write_rows
from equipoise.experiments.runs.scores import RunScores, set_name, tidy_rows, write_scores
from equipoise.experiments.runs.segmentation import DENSE, image_clusters, read_pixel_scores, with_all_pixels
from equipoise.experiments.specs.calibrators import calibrator_key, load_own_calibrator, make_calibrator
from equipoise.experiments.specs.metrics import load_metric, metric_mark, score_metric
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.specs.scoring import ScoringOptions
from equipoise.metrics.clusters import find_clusters
from equipoise.metrics.row_draws import RowDraws, draw_rows
from equipoise.metrics.selective import risk_coverage

__all__ = ["score_calibrated", "score_plain", "score_run", "score_with_bins"]

# Calibrators with more parameters are stored as binary files.
_LARGE = 10_000


def score_run(
    target: RunFolder,
    spec: Spec,
    options: ScoringOptions,
    *,
    score_pixels: Callable[[Calibrator], Mapping[str, Any]],
) -> None:
    """Score a run's predictions after each calibrator, unless that is done with the same options.

    With other options everything is scored again, calibrators of earlier commands included, so that all numbers of a
    run have the same options behind them. Calibrators that were fitted are read, not fitted again, unless they are code
    that has changed. Numbers of code that this command does not name are kept as long as nothing is scored again.

    Args:
        target: A run that is predicted.
        spec: Its spec.
        options: How it is scored.
        score_pixels: For segmentation: scores all pixels of ``test`` after a fitted calibrator.

    Raises:
        SpecError: If there are no rows to fit a calibrator on.
    """
    requested = {calibrator_key(one): one for one in options.calibrator_list}
    record = target.record("scored") or {"calibrators": [], "settings": {}, "shift": {}, "code": {}}
    files = target.manifest().files
    sets = {name: files[name]["sha256"] for name in (target.record("shifted") or {"files": []})["files"]}
    before = record["settings"].get("metrics", [])
    options = _with_earlier_metrics(options, before)
    has_same_options = {**record["settings"], "metrics": []} == {**options.to_table(), "metrics": []} and set(
        map(metric_mark, options.metric_list)
    ) <= set(before)
    is_current = has_same_options and record["shift"] == sets
    changed = {key for key, one in requested.items() if record["code"].get(key) != one.digest}
    others = [key for key in record["code"] if key not in requested]
    lost = {key for key in others if not (is_current and _is_scored(target, key, own=True))}
    keys = ["identity", *sorted({*record["calibrators"], *requested} - {"identity"} - lost)]
    if is_current and record["calibrators"] == keys and not changed and target.is_done("scored"):
        return
    work = _Scoring(target, spec, options, requested, changed, score_pixels)
    found = []
    for key in keys:
        is_known = (
            has_same_options and key not in changed and _is_scored(target, key, own=key in record["code"])
        )
        scores = target.scores(key) if is_known else work.score(key)
        found.append(scores if not sets or (is_known and is_current) else work.score_shifts(scores))
    target.clear_stages("scored")
    for scores in found:
        write_scores(scores, target.path / "scores" / f"{scores.calibrator}.json")
    write_rows(target.path / "scores.csv", tidy_rows(spec, found))
    digests = {key: requested[key].digest if key in requested else record["code"].get(key) for key in keys}
    code = {key: digest for key, digest in digests.items() if digest}
    target.write_record(
        "scored",
        ["scores.csv", *(f"scores/{key}.json" for key in keys), *_calibrator_files(target, keys[1:], code)],
        calibrators=keys,
        settings=options.to_table(),
        shift=sets,
        code=code,
    )


def _with_earlier_metrics(options: ScoringOptions, marks: Sequence[str]) -> ScoringOptions:
    """Return the options with metrics of earlier commands that need no code."""
    known = {metric_mark(one) for one in options.metric_list}
    more = [Component(name=mark) for mark in marks if mark in EXTRA and mark not in known]
    return replace(options, metrics=(*options.metric_list, *more))


def _is_scored(target: RunFolder, key: str, *, own: bool) -> bool:
    is_fitted = key == "identity" or target.calibrator_file(key) is not None
    return is_fitted and target.has(f"scores/{key}.json") and (not own or target.has(calibrated_name(key)))


def _calibrator_files(target: RunFolder, keys: Iterable[str], code: Mapping[str, str]) -> Iterator[str]:
    for key in keys:
        yield next(file for file in calibrator_names(key) if (target.path / file).exists())
        if key in code:
            yield calibrated_name(key)


@final
class _Scoring:
    """Predictions of one run, each split read once, and calibrators, each fitted once."""

    def __init__(
        self,
        target: RunFolder,
        spec: Spec,
        options: ScoringOptions,
        requested: Mapping[str, Component],
        changed: Collection[str],
        score_pixels: Callable[[Calibrator], Mapping[str, Any]],
    ) -> None:
        self._target, self._spec, self._options = target, spec, options
        self._requested, self._changed, self._score_pixels = requested, changed, score_pixels
        self._is_dense = target.has(DENSE)
        self._predictions_read: dict[str, Predictions] = {}
        self._fitted_calibrators: dict[str, Calibrator] = {}
        self._calibrated: dict[str, Predictions] = {}

    def _predictions(self, split: str) -> Predictions:
        if split not in self._predictions_read:
            self._predictions_read[split] = self._target.predictions(split)
        return self._predictions_read[split]

    def score(self, key: str) -> RunScores:
        """Score ``test`` after a calibrator; without one ``tune`` and ``calib`` too."""
        if key == "identity":
            splits = {split: self._predictions(split) for split in self._target.splits()}
            found = score_plain(splits, self._options, clusters=image_clusters(*splits.values()))
            return with_all_pixels(found, read_pixel_scores(self._target)) if self._is_dense else found
        after = self._test_after(key)
        if self._own(key):
            # Tables compare methods after the calibrator, and are made without its code.
            (self._target.path / calibrated_name(key)).parent.mkdir(exist_ok=True)
            write_predictions(after, self._target.path / calibrated_name(key))
        test = self._predictions("test")
        clusters = image_clusters(test)
        fitted = self._fitted(key)
        found = score_calibrated(key, test, fitted, self._options, after=after, clusters=clusters)
        return with_all_pixels(found, {"test": self._score_pixels(fitted)}) if self._is_dense else found

    def _own(self, key: str) -> Component | None:
        """Return a requested calibrator if it is the user's own code."""
        found = self._requested.get(key)
        return found if found is not None and found.is_code else None

    def score_shifts(self, scores: RunScores) -> RunScores:
        """Score additional test sets, unless that is done; the calibrator is the one that clean rows gave."""
        key = scores.calibrator
        cards, detection = dict(scores.cards), dict(scores.detection)
        resampling = {name: self._options.score_options[name] for name in ("level", "n_resamples", "seed")}
        for name, shift in self._target.shifts().items():
            found = self._predictions(set_name(name))
            fitted = None if key == "identity" else self._fitted(key)
            after = found if fitted is None else fitted(found)
            if shift.kind == "ood":
                detection[name] = score_detection(
                    self._test_after(key), after, calibrator=fitted, **resampling
                )
            else:
                cards[set_name(name)] = score(after, **self._options.score_options)
        return replace(scores, cards=cards, detection=detection)

    def _test_after(self, key: str) -> Predictions:
        """Return ``test`` after a calibrator, computed once; only that of the last calibrator is cached."""
        if key == "identity":
            return self._predictions("test")
        if key not in self._calibrated:
            self._calibrated = {key: self._fitted(key)(self._predictions("test"))}
        return self._calibrated[key]

    def _fitted(self, key: str) -> Calibrator:
        """Return the calibrator of these predictions, read or fitted once."""
        if key not in self._fitted_calibrators:
            self._fitted_calibrators[key] = self._read_or_fit(key)
        return self._fitted_calibrators[key]

    def _read_or_fit(self, key: str) -> Calibrator:
        own = self._own(key)
        if self._target.calibrator_file(key) is not None and key not in self._changed:
            return self._target.calibrator(key, own=None if own is None else load_own_calibrator(own))
        split = self._spec.data.fit_split
        if split not in self._target.splits():
            raise SpecError(
                f"{self._target.path}: the data have no {split!r} split to fit {key!r} on. Use 'identity'."
            )
        component = self._requested.get(key) or Component(name=key)
        fitted: Calibrator = make_calibrator(component).fit(self._predictions(split))
        (self._target.path / "calibrators").mkdir(exist_ok=True)
        small, large = (self._target.path / name for name in calibrator_names(key))
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
    options = ScoringOptions(
        n_bins=n_bins, closed=card.closed, level=card.level, n_resamples=card.n_resamples, seed=card.seed
    )
    rows = {split: target.calibrated(calibrator, split) for split in before.cards}
    if calibrator == "identity":
        found = score_plain(rows, options)
        return replace(before, cards=found.cards, classes=found.classes, draws=found.draws)
    cards = {split: score(part, **options.score_options) for split, part in rows.items()}
    return replace(before, cards=cards, draws=_draws(rows["test"], options, None))


def score_plain(
    splits: Mapping[str, Predictions], options: ScoringOptions, *, clusters: Any = None
) -> RunScores:
    """Score predictions as they are, on every split; classes and risk on ``test``.

    Args:
        splits: Predictions by split.
        options: How they are scored.
        clusters: Where rows depend on each other: the name of a column of groups that all splits have, or, if there is
            only ``test``, one value per row.

    Example:
        >>> rows = Predictions(probs=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> score_plain({"test": rows}, ScoringOptions(n_resamples=20)).test.n_samples
        3
    """
    judged, table = splits["test"], options.score_options
    cards = {split: score(part, clusters=clusters, **table) for split, part in splits.items()}
    found = cards["test"].clusters
    return RunScores(
        calibrator="identity",
        cards=cards,
        classes=score_by_class(
            judged,
            n_bins=options.n_bins,
            closed=options.closed,
            level=options.level,
            inflation=1.0 if found is None else found.inflation(options.level),
        ),
        risk=risk_coverage(judged),
        draws=_draws(judged, options, clusters),
        extras=_extras(judged, options, clusters),
        facts=_own_facts(options),
    )


def score_calibrated(
    calibrator: str,
    judged: Predictions,
    fitted: Calibrator,
    options: ScoringOptions,
    *,
    after: Predictions | None = None,
    clusters: Any = None,
) -> RunScores:
    """Score predictions after a fitted calibrator.

    Args:
        calibrator: Its key.
        judged: The predictions.
        fitted: The calibrator.
        options: How they are scored.
        after: The predictions after the calibrator, if they are known already.
        clusters: Where rows depend on each other: one value per row, or the name of a column of groups.

    Example:
        >>> from equipoise.calibrators import TemperatureScaling
        >>> rows = Predictions(logits=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], labels=[0, 1, 1])
        >>> fitted = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> score_calibrated("temperature", rows, fitted, ScoringOptions(n_resamples=20)).test.n_samples
        3
    """
    table = options.score_options
    after = fitted(judged) if after is None else after
    temperature = fitted.result.parameters.get("temperature")
    return RunScores(
        calibrator=calibrator,
        words=fitted.result.words,
        warnings=fitted.result.warnings,
        kind=fitted.kind,
        temperature=None if temperature is None else float(temperature),
        cards={"test": score(after, clusters=clusters, **table)},
        draws=_draws(after, options, clusters),
        extras=_extras(after, options, clusters),
        facts=_own_facts(options),
    )


def _draws(judged: Predictions, options: ScoringOptions, clusters: Any) -> RowDraws:
    codes = None if clusters is None else find_clusters(clusters, judged, where="score").codes
    return draw_rows(judged, ScoreSettings(**options.score_options), clusters=codes)


def _extras(judged: Predictions, options: ScoringOptions, clusters: Any) -> dict[str, Score]:
    return {
        one.label: score_metric(one, judged, level=options.level, seed=options.seed, clusters=clusters)
        for one in options.metric_list
    }


def _own_facts(options: ScoringOptions) -> dict[str, dict[str, Any]]:
    """Return the facts that authors state about their own metrics, so that tables need not load the code."""
    return {one.label: facts for one in options.metric_list if (facts := load_metric(one)[1])}
