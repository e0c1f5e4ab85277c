"""Decisions as files: any saved decision by its name, and tables with a column of decisions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, Unpack

import numpy as np

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.reading.columns import Columns, check_columns, takes_columns
from equipoise.core.reading.files import AnyPath, SourceLike
from equipoise.core.reading.rewriting import RewrittenTable, ScoreTable
from equipoise.decisions.accept_rule import AcceptRule
from equipoise.decisions.costs import CostRule
from equipoise.decisions.prediction_sets import PredictionSets
from equipoise.decisions.scores import SCORES

__all__ = ["Decision", "decide_file", "is_decision", "load_decision", "needed_columns"]

Decision: TypeAlias = AcceptRule | PredictionSets | CostRule

_KINDS: dict[str, type[AcceptRule] | type[PredictionSets] | type[CostRule]] = {
    "equipoise.accept_rule": AcceptRule,
    "equipoise.prediction_sets": PredictionSets,
    "equipoise.cost_rule": CostRule,
}
#: Name of the column that a decision adds to a table.
_COLUMN: dict[type, str] = {AcceptRule: "accept", PredictionSets: "set", CostRule: "action"}
_LONGEST = 1 << 28


def is_decision(path: AnyPath) -> bool:
    """Return whether a file is a saved decision."""
    return _format_of(path) in _KINDS


def load_decision(path: AnyPath) -> Decision:
    """Read what :meth:`AcceptRule.save`, :meth:`PredictionSets.save` or :meth:`CostRule.save` wrote.

    Raises:
        DataError: If the file is something else, is from a newer version, or was changed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "decision.json"
        >>> CostRule(wrong=10, abstain=1).save(path)
        >>> load_decision(path).wrong
        10
    """
    found = _format_of(path)
    if found not in _KINDS:
        raise DataError(
            f"load_decision: {path} is not a saved decision. Write one with `equipoise decide` or the method `save`."
        )
    return _KINDS[found].load(path)


def _format_of(path: AnyPath) -> str:
    file = Path(path)
    if file.suffix.lower() != ".json":
        return ""
    try:
        if file.stat().st_size > _LONGEST:
            return ""
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except (ValueError, RecursionError):
        return ""
    return str(content.get("format", "")) if isinstance(content, dict) else ""


def needed_columns(decision: Decision) -> list[str]:
    """Return the columns that a decision looks at besides the scores."""
    found = [getattr(decision, "by", None)]
    if isinstance(decision, AcceptRule) and decision.score not in (None, *SCORES):
        found.append(decision.score)
    return list(dict.fromkeys(name for name in found if name is not None))


@takes_columns
def decide_file(
    decision: Decision, path: SourceLike, output: AnyPath, **columns: Unpack[Columns]
) -> RewrittenTable:
    r"""Write a table of predictions again with a column of decisions; everything else stays as it is.

    The column is ``accept`` (true or false), ``set`` (names or numbers of classes with ``|`` between them) or
    ``action`` (its name). Labels are not needed.

    Args:
        decision: A rule, fitted sets or costs.
        path: What :func:`equipoise.read_predictions` takes.
        output: The new file; its ending names the format.
        **columns: As in :func:`equipoise.read_predictions`.

    Raises:
        DataError: If the table has such a column already, or the format cannot keep the table.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.csv").write_text("day,confidence\nMonday,0.95\nTuesday,0.6\n")
        >>> _ = decide_file(CostRule(wrong=10, abstain=1), folder / "a.csv", folder / "b.csv")
        >>> (folder / "b.csv").read_text().splitlines()
        ['day,confidence,action', 'Monday,0.95,accept', 'Tuesday,0.6,abstain']
    """
    said = check_columns(columns, where="decide_file")
    wanted = needed_columns(decision)
    if wanted:
        said["groups"] = wanted
    if isinstance(decision, AcceptRule) and decision.score is None:
        raise DataError(
            "decide_file: the rule was certified on an array of scores. Certify on a column of the table."
        )
    counts, without = Counter[str](), Counter[str]()

    def decide(rows: Predictions) -> Array:
        values = _decide(decision, rows)
        found = (
            np.char.count(values, "|") + (values != "") if isinstance(decision, PredictionSets) else values
        )
        _count(counts, found)
        if isinstance(decision, AcceptRule) and decision.by is not None:
            column = rows.groups[decision.by].astype(np.str_)
            _count(without, column[~decision.has_threshold(rows)])
        return values

    table = ScoreTable(path, said).add(Path(output), _COLUMN[type(decision)], decide)
    return replace(table, counts=dict(counts), n_without_group=dict(without))


def _count(counts: Counter[str], values: Array) -> None:
    names, numbers = np.unique(values, return_counts=True)
    counts.update(dict(zip(map(str, names.tolist()), numbers.tolist(), strict=True)))


def _decide(decision: Decision, rows: Predictions) -> Array:
    if isinstance(decision, AcceptRule):
        return decision(rows)
    if isinstance(decision, CostRule):
        found = decision(rows)
        return np.array(found.names)[found.action]
    members = decision(rows).members
    names = rows.class_names or [str(j) for j in range(members.shape[1])]
    # One join per row: sets have different sizes.
    return np.array(["|".join(names[j] for j in np.flatnonzero(one)) for one in members], np.str_)
