"""What was chosen on ``tune``: made when a comparison is run, stored beside its runs, read by tables and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from equipoise.core.checksums import content_checksum
from equipoise.core.errors import DataError
from equipoise.evaluate import Score, Sweep, mean_over_seeds
from equipoise.evaluate.selection import CRITERIA
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import read_json, write_json
from equipoise.metrics.facts import metric_facts

__all__ = [
    "SeedChoice",
    "describe_choice",
    "read_choices_beside",
    "read_earlier_choices",
    "sweep_of",
    "write_choices",
]

_ENDING = ".choices.json"
_RULES = {
    "one_standard_error": "the simplest within one standard error of the best",
    "best": "the best",
}


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
