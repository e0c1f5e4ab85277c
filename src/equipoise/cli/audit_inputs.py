"""What ``equipoise audit`` looks at: rows, or saved sums; alone, or beside a baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import click

from equipoise.cli.engines import Engine
from equipoise.cli.inputs import naming_ids, one_or_several
from equipoise.cli.scoring import read_along
from equipoise.cli.states import read_states, state_paths
from equipoise.core.predictions import Predictions
from equipoise.core.predictions.alignment import align
from equipoise.core.predictions.concatenate import concatenate
from equipoise.core.progress import progress
from equipoise.core.reading import Columns, iter_predictions, read_predictions
from equipoise.evaluate.audit_state import AuditState
from equipoise.evaluate.auditing import audit, audit_sums, sum_up
from equipoise.evaluate.audits import Audit
from equipoise.evaluate.comparison import compare, compare_states
from equipoise.evaluate.differences import Differences
from equipoise.metrics.clusters import find_clusters

__all__ = ["Asked", "Result"]

_DRAWN = ("level", "n_resamples", "seed")
_EVENT = {"target": "positive"}


class Result(NamedTuple):
    """What came out.

    Attributes:
        found: The audit.
        sums: What it was read from.
        baseline: The audit of what it was compared with.
        comparison: Baseline first.
        comparison_of_event: The same of the probability of class 1, where the audit judges both.
    """

    found: Audit
    sums: AuditState
    baseline: Audit | None = None
    comparison: Differences | None = None
    comparison_of_event: Differences | None = None


@dataclass(frozen=True)
class Asked:
    """What to audit, and how.

    Attributes:
        files: Files of rows, or of saved states.
        columns: What the rows are.
        by: Columns of groups.
        settings: How predictions are scored.
        engine: Where the files are summed.
        quiet: Whether progress is left out.
        cluster: Column of clusters; all rows are held in memory for it.
    """

    files: tuple[str, ...]
    columns: Columns
    by: tuple[str, ...]
    settings: dict[str, Any]
    engine: Engine
    quiet: bool
    cluster: str | None = None

    def alone(self) -> Result:
        """Return the audit by itself."""
        states = state_paths(self.files)
        if states:
            saved = read_states(states)
            return Result(audit(saved, by=self.by or None, **self.settings), saved)
        if self.engine.name == "ray":
            state = self.engine.sums(self.files, self._grouped, self.by or None, self.settings)
            return Result(audit(state, **self.settings), state)
        chunks = progress(
            iter_predictions(one_or_several(self.files), **self._grouped),
            label="auditing",
            unit="chunks",
            quiet=self.quiet,
        )
        return self._of_rows(chunks if self.cluster is None else concatenate(list(chunks)))

    def _of_rows(self, rows: Predictions | Iterable[Predictions]) -> Result:
        by = None if not self.by and self.cluster is None else self.by
        state, held = sum_up(rows, by=by, **self._chosen("n_bins", "closed", "positive"))
        chosen = state.find_target(self.settings["target"], self.settings["positive"], where="audit")
        drawn = self._chosen(*_DRAWN)
        return Result(audit_sums(state, held, clusters=self.cluster, target=chosen, **drawn), state)

    def beside(self, against: str) -> Result:
        """Return the audit and a comparison with another file: of the same rows, or of sums where one has no rows."""
        states = state_paths((against,))
        if states or state_paths(self.files):
            mine, other = self.alone(), replace(self, files=(against,), by=()).alone()
            judged = self._chosen(*_DRAWN, "target", "positive")
            both = mine.found.card.event is not None and other.sums.event is not None
            return mine._replace(
                baseline=other.found,
                comparison=compare_states(other.sums, mine.sums, **judged),
                comparison_of_event=compare_states(other.sums, mine.sums, **judged | _EVENT)
                if both
                else None,
            )
        if self.engine.name == "ray":
            raise click.UsageError(
                "--engine ray sums files; to be paired with --against, rows must be held here. "
                "Compare with a saved state: --against baseline.state."
            )
        baseline = read_predictions(against, **self.columns)
        rows = read_predictions(one_or_several(self.files), **self._grouped)
        with naming_ids([one_or_several(self.files), against], self.columns):
            rows, baseline = align(rows, baseline, where="audit")
        mine = self._of_rows(rows)
        # The baseline may lack the columns of groups, and it is not what is audited.
        shared = tuple(column for column in mine.found.groups if column in baseline.groups)
        settings = self.settings
        if self.cluster is not None:
            settings = settings | {"clusters": find_clusters(self.cluster, rows, baseline, where="audit")}
        both = mine.found.card.event is not None and baseline.has_scores
        return mine._replace(
            baseline=audit(baseline, by=shared, **settings),
            comparison=compare(baseline, rows, **settings),
            comparison_of_event=compare(baseline, rows, **settings | _EVENT) if both else None,
        )

    @property
    def _grouped(self) -> Columns:
        return read_along(self.columns, self.by, self.cluster)

    def _chosen(self, *names: str) -> dict[str, Any]:
        return {name: self.settings[name] for name in names}
