"""What was chosen on ``tune``: made when a comparison is run, stored beside its runs, read by tables and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from equipoise.calibrators import Calibrator, TemperatureScaling
from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.seeds import numpy_generator
from equipoise.evaluate import Score, Sweep, mean_over_seeds, score
from equipoise.evaluate.selection import select_candidate, selection_value
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import read_json, write_json
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.specs.tuning import CRITERIA, TunedMethod
from equipoise.experiments.tuning.samplers import make_sampler
from equipoise.metrics.facts import metric_facts

__all__ = [
    "SeedChoice",
    "Study",
    "choose_setting",
    "describe_choice",
    "read_choices_beside",
    "read_earlier_choices",
    "scale_half",
    "sweep_of",
    "write_choices",
]

_ENDING = ".choices.json"
_RULES = {
    "one_standard_error": "the simplest within one standard error of the best",
    "best": "the best",
}


@final
class Study:
    """The settings of a tuned method that are tried with one dataset, network, recipe and seed.

    Args:
        tuned: The method.
        place: A spec with the dataset, network, recipe and seed.
    """

    def __init__(self, tuned: TunedMethod, place: Spec) -> None:
        self.tuned, self.place = tuned, place
        self._sampler = make_sampler(tuned, place.seed)
        self._settings: dict[Spec, dict[str, Any]] = {}

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The settings that were tried, in order; a setting that comes again counts once."""
        return list(self._settings.values())

    @property
    def specs(self) -> list[Spec]:
        """The run at each setting."""
        return list(self._settings)

    def ask(self) -> list[Spec]:
        """Return the runs to do next; nothing if all are done."""
        found = []
        for setting in self._sampler.ask():
            spec = replace(self.place, method=self.tuned.method_at(setting))
            self._settings.setdefault(spec, setting)
            found.append(spec)
        return found

    def tell(self, spec: Spec, run: RunFolder | None) -> None:
        """Take in what a run gave on ``tune``; None if it failed."""

        def value() -> float:
            assert run is not None
            tune, card = run.predictions("tune"), run.scores().test
            scaled = scale_half(tune)[0] if self.tuned.by == "nll_scaled" else tune
            metric = CRITERIA[self.tuned.by]
            return selection_value(scaled, metric=metric, n_bins=card.n_bins, closed=card.closed)

        self._sampler.tell(self._settings[spec], None if run is None else value)


@final
@dataclass(frozen=True, kw_only=True)
class SeedChoice:
    """The choice of one seed.

    Attributes:
        label: What tables call the method.
        seed: The seed.
        by: Criterion.
        rule: Rule of the choice.
        settings: The settings that were tried, the simplest first.
        runs: The run at each setting, by name.
        listed: Which of these runs are methods of the comparison on their own, too.
        tune: What each gave on ``tune``: value, low and high.
        test: What each gave on ``test``, which took no part.
        index: Which setting was chosen; None if it could not be, because runs failed.
        fingerprints: Checksum of the predictions and scores of each run.
    """

    label: str
    seed: int
    by: str
    rule: str
    settings: tuple[dict[str, Any], ...]
    runs: tuple[str, ...]
    listed: tuple[str, ...] = ()
    tune: tuple[tuple[float, float, float], ...] = ()
    test: tuple[tuple[float, float, float], ...] = ()
    index: int | None = None
    fingerprints: tuple[str, ...] = ()

    @property
    def run(self) -> str | None:
        """Name of the run that was chosen."""
        return None if self.index is None else self.runs[self.index]


def choose_setting(
    study: Study,
    names: Sequence[str],
    runs: Mapping[str, RunFolder],
    listed: Iterable[str],
    earlier: Iterable[SeedChoice] = (),
) -> SeedChoice:
    """Choose for one seed; only then look at what each setting gave on ``test``.

    An earlier choice among the same runs, as they are now, is used again.

    Args:
        study: What was tried.
        names: The run of each setting, by name.
        runs: Finished runs by name.
        listed: Runs that are methods on their own.
        earlier: Earlier choices.
    """
    by, rule = study.tuned.by, study.tuned.rule
    choice = SeedChoice(
        label=study.tuned.label,
        seed=study.place.seed,
        by=by,
        rule=rule,
        settings=tuple(study.settings),
        runs=tuple(names),
        listed=tuple(name for name in names if name in set(listed)),
    )
    if any(name not in runs for name in names):
        return choice
    found = [runs[name] for name in names]
    choice = replace(choice, fingerprints=tuple(run.fingerprint() for run in found))
    for one in earlier:
        same = ("by", "rule", "runs", "fingerprints")
        if all(getattr(one, key) == getattr(choice, key) for key in same):
            return replace(choice, tune=one.tune, test=one.test, index=one.index)
    tune = [run.predictions("tune") for run in found]
    cards = [run.scores().cards for run in found]
    first = cards[0]["test"]
    bins: dict[str, Any] = {"n_bins": first.n_bins, "closed": first.closed}
    if by == "nll_scaled":
        options = {"level": first.level, "n_resamples": first.n_resamples, "seed": first.seed, **bins}
        scaled = [scale_half(part) for part in tune]
        tune = [half for half, _ in scaled]
        cards = [
            {"tune": score(half, **options), "test": score(fitted(run.predictions("test")), **options)}
            for run, (half, fitted) in zip(found, scaled, strict=True)
        ]
    metric = CRITERIA[by]
    index = select_candidate(tune, metric=metric, rule=rule, **bins)
    on_tune, on_test = (
        tuple(
            (card[split][metric].value, card[split][metric].low, card[split][metric].high) for card in cards
        )
        for split in ("tune", "test")
    )
    return replace(choice, index=index, tune=on_tune, test=on_test)


def scale_half(tune: Predictions) -> tuple[Predictions, Calibrator]:
    """Return half of ``tune``, always the same, after temperature scaling fitted on the other half, and the calibrator.

    Example:
        >>> rows = Predictions(logits=[[3.0, 0.0]] * 8, labels=[0, 0, 0, 1] * 2, split="tune")
        >>> half, fitted = scale_half(rows)
        >>> len(half), fitted.kind
        (4, 'temperature')
    """
    order = numpy_generator(0, "halves of tune").permutation(len(tune))
    half = len(tune) // 2
    fitted = TemperatureScaling().fit(tune.take(np.sort(order[:half])))
    return fitted(tune.take(np.sort(order[half:]))), fitted


def describe_choice(seeds: Sequence[SeedChoice]) -> str:
    """Describe what was chosen for each seed, how, and what it cost.

    Example:
        >>> one = SeedChoice(label="focal(gamma by nll)", seed=0, by="nll", rule="best", settings=({"gamma": 1.0},
        ...     {"gamma": 2.0}), runs=("a", "b"), index=1)
        >>> describe_choice([one])
        'focal(gamma by nll): gamma=2.0 (seed 0); chosen on tune by nll, the best; 2 runs.'
    """
    first = seeds[0]
    found: dict[str, list[int]] = {}
    for one in seeds:
        words = "nothing, because runs are missing"
        if one.index is not None:
            words = ", ".join(f"{name}={value}" for name, value in one.settings[one.index].items())
        found.setdefault(words, []).append(one.seed)
    picked = "; ".join(
        f"{words} (seed{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))})"
        for words, numbers in found.items()
    )
    cost = sum(len(one.runs) for one in seeds)
    return f"{first.label}: {picked}; chosen on tune by {first.by}, {_RULES[first.rule]}; {cost} runs."


def sweep_of(seeds: Sequence[SeedChoice], *, level: float = 0.95) -> Sweep | None:
    """Return what each setting gave, over seeds; None if no seed has all its runs."""
    whole = [one for one in seeds if one.index is not None]
    if not whole:
        return None
    first, metric = whole[0], CRITERIA[whole[0].by]
    if any(one.settings != first.settings for one in whole):
        return _search_sweep(whole, describe_choice(seeds))
    tune, test = (
        tuple(
            mean_over_seeds(metric, [Score(*getattr(one, split)[index]) for one in whole], level=level)
            for index in range(len(first.settings))
        )
        for split in ("tune", "test")
    )
    counts = tuple(sum(one.index == index for one in whole) for index in range(len(first.settings)))
    return Sweep(
        first.label, metric_facts(metric).key, first.settings, tune, test, counts, describe_choice(seeds)
    )


def _search_sweep(seeds: Sequence[SeedChoice], words: str) -> Sweep:
    """Return what was tried where every seed sought settings of its own: each setting with its own seed's interval."""
    tried = [
        (one.settings[index], Score(*one.tune[index]), Score(*one.test[index]), int(index == one.index))
        for one in seeds
        for index in range(len(one.settings))
    ]
    settings, tune, test, counts = zip(*tried, strict=True)
    return Sweep(
        seeds[0].label, metric_facts(CRITERIA[seeds[0].by]).key, settings, tune, test, counts, words, True
    )


def write_choices(path: Path, choices: Sequence[SeedChoice]) -> None:
    """Write what a comparison chose beside its runs; a comparison without choices leaves no file."""
    if choices:
        tables = [asdict(one) for one in choices]
        write_json(path, {"choices": [{**table, "checksum": content_checksum(table)} for table in tables]})
    else:
        path.unlink(missing_ok=True)


def read_earlier_choices(path: Path) -> list[SeedChoice]:
    """Return what a comparison wrote when it was run before; nothing if it was not, or its file is damaged.

    Example:
        >>> read_earlier_choices(Path("nowhere.choices.json"))
        []
    """
    try:
        return _read(path)
    except DataError:
        return []  # it chooses anew, and writes the file anew


def read_choices_beside(runs: Iterable[RunFolder]) -> list[SeedChoice]:
    """Return what was chosen among runs by the comparisons that made them, as their folders tell.

    Raises:
        DataError: If a file that tells is damaged.
    """
    names = {run.name for run in runs}
    folders = sorted({run.path.parent for run in runs})
    files = [file for folder in folders for file in sorted(folder.glob(f"*{_ENDING}"))]
    return [one for file in files for one in _read(file) if names.intersection(one.runs)]


def _read(file: Path) -> list[SeedChoice]:
    try:
        return [_chosen(table) for table in read_json(file)["choices"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: damaged: no choices of a comparison. Give the command that made it again."
        ) from error


def _chosen(table: Mapping[str, Any]) -> SeedChoice:
    plain = {key: value for key, value in table.items() if key != "checksum"}
    if table["checksum"] != content_checksum(plain):
        raise KeyError("checksum")
    fixed = {key: tuple(map(tuple, table[key])) for key in ("tune", "test")}
    lists = {key: tuple(table[key]) for key in ("settings", "runs", "listed", "fingerprints")}
    return SeedChoice(**{**plain, **lists, **fixed})
