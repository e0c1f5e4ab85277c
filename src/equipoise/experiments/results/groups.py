"""Runs that may stand in one table: the same data, network and recipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final

from equipoise.core.errors import SpecError, located
from equipoise.core.names import look_up
from equipoise.core.read_only import ReadOnly
from equipoise.experiments.code.component import plain
from equipoise.experiments.results.papers import printed_for
from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import check_content, read_json, write_json
from equipoise.experiments.runs.scores import RunScores, tidy_rows
from equipoise.experiments.specs.methods import method_entry
from equipoise.experiments.specs.run import Spec
from equipoise.experiments.tuning.choices import SeedChoice, read_choices_beside

__all__ = [
    "RunGroup",
    "ScoredGroup",
    "ShownOrder",
    "check_baseline",
    "group_runs",
    "read_orders_beside",
    "select_from",
    "write_order",
]

_ORDER_ENDING = ".order.json"
_ORDER_CONTENT = {"methods": [str], "calibrators": [str], "baseline": str}


class ScoredGroup(Protocol):
    """Seeds of several methods that may stand in one table, and what they scored."""

    @property
    def title(self) -> str:
        """What the rows are of."""

    @property
    def model(self) -> str:
        """Whose predictions they are; may be empty."""

    @property
    def methods(self) -> Mapping[str, Sequence[Any]]:
        """Seeds by label of the method."""

    @property
    def scores(self) -> Mapping[str, Mapping[str, RunScores]]:
        """What each scored, by its name and the calibrator."""

    @property
    def calibrators(self) -> list[str]:
        """All calibrators, no calibration first."""

    def seeds(self, label: str, calibrator: str) -> Mapping[int, RunScores]:
        """Return what a method scored after a calibrator, by seed."""

    def history(self, label: str, seed: int) -> Sequence[Mapping[str, Any]]:
        """Return one row per epoch of a training; none if it was not trained here."""

    def fidelity(self, label: str) -> str:
        """Return how far a method was checked against its source."""

    def printed(self, label: str, calibrator: str, metrics: Sequence[str]) -> dict[str, str]:
        """Return what papers printed for the same, by metric."""


@final
@dataclass(frozen=True, kw_only=True)
class ShownOrder:
    """What a comparison lists, in its order.

    Attributes:
        methods: Labels of the methods.
        calibrators: Keys of the calibrators, no calibration first.
        baseline: Label of the method that others are compared with.

    Example:
        >>> ShownOrder(methods=("ce", "focal"), calibrators=("identity",), baseline="ce").baseline
        'ce'
    """

    methods: tuple[str, ...]
    calibrators: tuple[str, ...]
    baseline: str


def write_order(folder: Path, name: str, order: ShownOrder) -> None:
    """Write the order of a comparison beside its runs.

    Args:
        folder: Where the run folders are.
        name: Name of the comparison.
        order: What it lists.
    """
    write_json(folder / f"{name}{_ORDER_ENDING}", asdict(order))


def read_orders_beside(runs: Iterable[RunFolder]) -> list[ShownOrder]:
    """Return the orders of the comparisons that lie beside runs; nothing for runs of no comparison.

    Raises:
        DataError: If a file of them is damaged.
    """
    folders = sorted({run.path.parent for run in runs})
    found = []
    for file in (file for folder in folders for file in sorted(folder.glob(f"*{_ORDER_ENDING}"))):
        content = read_json(file)
        check_content(content, _ORDER_CONTENT, where=str(file))
        methods, calibrators = (tuple(content[key]) for key in ("methods", "calibrators"))
        found.append(ShownOrder(methods=methods, calibrators=calibrators, baseline=content["baseline"]))
    return found


class RunGroup(NamedTuple):
    """Runs of the same data, network and recipe: the ones that may stand in one table.

    Attributes:
        data: Key of the dataset.
        model: Key of the network.
        note: What sets it apart from other groups of the same data and network; mostly empty.
        methods: Runs by label of the method, in the order in which methods first come, each sorted by seed.
        specs: Spec of every run by its name.
        scores: What every run scored, by its name and the calibrator; runs that were tried and not chosen have
            scores, and are of no method.
        choices: What was chosen for each seed, by label of the method.
        usual_baseline: Label of the method that the comparison behind the runs names as its baseline; may be empty.
    """

    data: str
    model: str
    note: str
    methods: Mapping[str, list[RunFolder]]
    specs: Mapping[str, Spec]
    scores: Mapping[str, Mapping[str, RunScores]]
    choices: Mapping[str, Sequence[SeedChoice]] = ReadOnly()
    usual_baseline: str = ""

    @property
    def title(self) -> str:
        """The dataset, with what sets the group apart."""
        return f"{self.data} ({self.note})" if self.note else self.data

    @property
    def slug(self) -> str:
        """A name for files."""
        return re.sub(r"[^\w.]+", "-", "-".join(filter(None, (self.data, self.model, self.note)))).strip("-")

    @property
    def runs(self) -> list[RunFolder]:
        """All runs."""
        return [run for group in self.methods.values() for run in group]

    def baseline(self, label: str | None) -> str:
        """Return this label if there are runs of the method, else the usual one, else that of the first."""
        known = (one for one in (label, self.usual_baseline) if one is not None and one in self.methods)
        return next(known, next(iter(self.methods)))

    def select(
        self, *, methods: Sequence[str] | None = None, calibrators: Sequence[str] | None = None
    ) -> RunGroup:
        """Return the group with these methods and calibrators only; their order stays as it is.

        Args:
            methods: Labels; None keeps all.
            calibrators: Keys, ``"identity"`` for no calibration; None keeps all.
        """
        kept = {label: runs for label, runs in self.methods.items() if methods is None or label in methods}
        scores = {
            run: {key: one for key, one in parts.items() if calibrators is None or key in calibrators}
            for run, parts in self.scores.items()
        }
        choices = {label: seeds for label, seeds in self.choices.items() if label in kept}
        return self._replace(methods=kept, scores=scores, choices=choices)

    def in_order(self, orders: Sequence[ShownOrder]) -> RunGroup:
        """Return the group with methods and calibrators in the order of the comparisons that list them."""
        labels = [*(label for one in orders for label in one.methods), *self.methods]
        keys = [*(key for one in orders for key in one.calibrators), *self.calibrators]
        return self._replace(
            methods={label: self.methods[label] for label in labels if label in self.methods},
            scores={
                run: {key: parts[key] for key in (*keys, *parts) if key in parts}
                for run, parts in self.scores.items()
            },
            usual_baseline=next((one.baseline for one in orders if one.baseline in self.methods), ""),
        )

    @property
    def calibrators(self) -> list[str]:
        """All calibrators that a run was scored after, in the order in which they first come."""
        return list(dict.fromkeys(name for run in self.runs for name in self.scores[run.name]))

    def runs_by_seed(self, label: str, calibrator: str) -> dict[int, RunFolder]:
        """Return the runs of a method that were scored after a calibrator, by seed."""
        runs = [run for run in self.methods[label] if calibrator in self.scores[run.name]]
        return {self.specs[run.name].seed: run for run in runs}

    def seeds(self, label: str, calibrator: str) -> dict[int, RunScores]:
        """Return what a method scored after a calibrator, by seed."""
        runs = self.runs_by_seed(label, calibrator)
        return {seed: self.scores[run.name][calibrator] for seed, run in runs.items()}

    def history(self, label: str, seed: int) -> Sequence[Mapping[str, Any]]:
        """Return one row per epoch of a training."""
        return self.runs_by_seed(label, "identity")[seed].history()

    def spec(self, label: str) -> Spec:
        """Return the spec of a method's first run."""
        return self.specs[self.methods[label][0].name]

    def fidelity(self, label: str) -> str:
        """Return how far a method was checked against its source."""
        return method_entry(self.spec(label).method).fidelity

    def printed(self, label: str, calibrator: str, metrics: Sequence[str]) -> dict[str, str]:
        """Return what papers printed for the same dataset, network and method, by metric, with the source."""
        return printed_for(self.spec(label), calibrator, metrics, tuned=self.tuned(label))

    def tuned(self, label: str) -> list[str]:
        """Return the parameters of a method that were chosen on ``tune``."""
        return list(self.choices[label][0].settings[0]) if label in self.choices else []

    def rows(self, run: RunFolder, calibrators: Sequence[str]) -> list[dict[str, Any]]:
        """Return a run's tidy rows; data that differ in a setting have names that differ."""
        known = self.scores[run.name]
        rows = tidy_rows(self.specs[run.name], [known[name] for name in calibrators if name in known])
        chosen = [label for label, seeds in self.choices.items() if any(one.run == run.name for one in seeds)]
        return [{**row, "data": self.title, "chosen_as": "; ".join(chosen)} for row in rows]


def group_runs(
    runs: Sequence[RunFolder],
    choices: Sequence[SeedChoice] | None = None,
    *,
    specs: Mapping[str, Spec] | None = None,
    orders: Sequence[ShownOrder] | None = None,
    n_bins: int | None = None,
) -> list[RunGroup]:
    """Group finished runs by data, network and recipe, all their settings included, and read what they scored.

    Args:
        runs: Finished runs.
        choices: What was chosen among them; by default what is written beside them. A choice stands for its runs.
        specs: Specs by name of the run; by default those in their folders, which may differ in titles.
        orders: In which order methods and calibrators are shown; by default that of the comparisons beside the runs.
        n_bins: Score them anew with so many bins; by default their scores are read.

    Raises:
        DataError: If a file of a run is damaged.
        SpecError: If runs that belong together were scored with different bins.

    Example:
        >>> group_runs([])
        []
    """
    known_specs = specs or {}
    specs = {run.name: known_specs[run.name] if run.name in known_specs else run.spec() for run in runs}
    groups: dict[tuple[Any, ...], list[RunFolder]] = {}
    for run in runs:
        spec = specs[run.name]
        groups.setdefault((spec.data, spec.model, spec.recipe), []).append(run)
    firsts = [specs[group[0].name] for group in groups.values()]
    known = read_choices_beside(runs) if choices is None else choices
    made = (
        _group(group, _note(first, firsts), specs, n_bins)
        for first, group in zip(firsts, groups.values(), strict=True)
    )
    shown = read_orders_beside(runs) if orders is None else orders
    return [_with_choices(group, known).in_order(shown) for group in made]


def _settings(spec: Spec) -> dict[str, Any]:
    """Return what sets a group of runs apart, by a name to show."""
    recipe: dict[str, Any] = plain(spec.recipe)
    recipe.pop("name", None)
    return {
        "split seed": spec.data.seed,
        "content": (spec.data.digest or "")[:8],
        **{f"data.{key}": plain(value) for key, value in spec.data.options.items()},
        **{f"model.{key}": plain(value) for key, value in spec.model.options.items()},
        **({"model.weights": (spec.model.digest or spec.model.weights)[:8]} if spec.model.weights else {}),
        **recipe,
    }


def _note(own: Spec, others: Sequence[Spec]) -> str:
    """Describe what differs from other groups of the same data and network."""
    rivals = [
        _settings(other)
        for other in others
        if (other.data.name, other.model.name) == (own.data.name, own.model.name)
    ]
    names = dict.fromkeys(name for rival in rivals for name in rival)
    differing = [name for name in names if any(rival.get(name) != rivals[0].get(name) for rival in rivals)]
    settings = _settings(own)
    return ", ".join(
        f"{name.partition('.')[2] or name}={settings.get(name, 'default')}" for name in differing
    )


def _group(group: Sequence[RunFolder], note: str, specs: Mapping[str, Spec], n_bins: int | None) -> RunGroup:
    methods: dict[str, list[RunFolder]] = {}
    for run in group:
        methods.setdefault(specs[run.name].method.label, []).append(run)
    for members in methods.values():
        members.sort(key=lambda run: specs[run.name].seed)
    own = {run.name: specs[run.name] for run in group}
    first = own[group[0].name]
    scores = {run.name: {name: _scores(run, name, n_bins) for name in run.calibrators()} for run in group}
    _check_bins(scores)
    return RunGroup(first.data.name, first.model.name, note, methods, own, scores)


def _scores(run: RunFolder, calibrator: str, n_bins: int | None) -> RunScores:
    if n_bins is None:
        return run.scores(calibrator)
    from equipoise.experiments.runs.scoring import score_with_bins  # loads torch, which tables do without

    return score_with_bins(run, calibrator, n_bins)


def _with_choices(group: RunGroup, choices: Sequence[SeedChoice]) -> RunGroup:
    """Put each choice in the place of the first setting that was tried; its other runs leave the table."""
    own = [one for one in choices if group.specs.keys() & set(one.runs)]
    if not own:
        return group
    listed = {name for one in own for name in one.listed}
    places = {name: one.label for one in own for name in reversed(one.runs)}
    runs = {run.name: run for run in group.runs}
    methods: dict[str, list[RunFolder]] = {}
    for label, members in group.methods.items():
        for run in members:
            if run.name in listed or run.name not in places:
                methods.setdefault(label, []).append(run)
            if run.name in places:
                methods.setdefault(places[run.name], [])
    for one in own:
        methods.setdefault(one.label, []).extend(run for name, run in runs.items() if name == one.run)
    by_label = {label: [one for one in own if one.label == label] for label in methods}
    return group._replace(
        methods={label: members for label, members in methods.items() if members},
        choices={label: seeds for label, seeds in by_label.items() if seeds},
    )


def _check_bins(scores: Mapping[str, Mapping[str, RunScores]]) -> None:
    """Numbers of other bins are other numbers, and must not stand in one table."""
    known = {
        f"{part.test.n_bins} {part.test.closed}-closed": run
        for run, parts in scores.items()
        for part in parts.values()
    }
    if len(known) > 1:
        (one, first), (other, second), *_ = known.items()
        raise SpecError(
            f"runs {first} and {second} were scored with {one} and {other} bins, and cannot stand in one table. Give "
            "the command that made them again, with the same bins for all."
        )


def check_baseline(baseline: str | None, groups: Sequence[RunGroup]) -> None:
    """Raise if no group has such a method.

    Raises:
        SpecError: With the nearest method there is.

    Example:
        >>> check_baseline(None, [])
    """
    known = {label: group for group in groups for label in group.methods}
    if baseline is not None and known:
        with located("baseline"):
            look_up(baseline, known, what="run of a method")


def select_from(
    groups: Sequence[RunGroup], *, methods: Sequence[str] = (), calibrators: Sequence[str] = ()
) -> list[RunGroup]:
    """Return groups with some of their methods and calibrators; groups that have none of them are left out.

    Args:
        groups: From :func:`group_runs`.
        methods: Labels, or patterns such as ``"focal*"``; none keeps all.
        calibrators: Keys, or patterns; none keeps all.

    Raises:
        SpecError: If there is no such method or calibrator, with the nearest there is.

    Example:
        >>> select_from([], methods=[])
        []
    """
    labels = dict.fromkeys(label for group in groups for label in group.methods)
    keys = dict.fromkeys(key for group in groups for key in group.calibrators)
    chosen = _matching(methods, labels, what="run of a method")
    after = _matching(calibrators, keys, what="calibrator that runs were scored after")
    found = [group.select(methods=chosen, calibrators=after) for group in groups]
    return [group for group in found if group.methods and group.calibrators]


def _matching(names: Sequence[str], known: Mapping[str, None], *, what: str) -> list[str] | None:
    """Return the known names that are given, or match a pattern; None if none is given."""
    if not names:
        return None
    found: list[str] = []
    for one in names:
        matches = [one] if one in known else [name for name in known if fnmatchcase(name, one)]
        if not matches:
            look_up(one, known, what=what)
        found += matches
    return found
