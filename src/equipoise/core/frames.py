"""Data frames: taken where arrays are, and given where tables are. The package that makes them stays optional."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from equipoise.core.errors import require

__all__ = ["as_columns", "check_same_order", "to_frame"]


def to_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows of named values as a pandas DataFrame.

    Raises:
        MissingExtraError: If pandas is not installed.

    Example:
        >>> to_frame([{"metric": "ece", "value": 0.5}]).shape
        (1, 2)
    """
    pandas = require("pandas", extra="pandas", purpose="make a data frame")
    return pandas.DataFrame(list(rows))


def as_columns(table: Any) -> Any:
    """Return a data frame as a dictionary of its columns; anything else as it is.

    Example:
        >>> sorted(as_columns(to_frame([{"site": 1, "age": 2}])))
        ['age', 'site']
    """
    if isinstance(table, Mapping) or not hasattr(table, "columns"):
        return table
    return {str(name): table[name] for name in table.columns}


def check_same_order(where: str, **columns: Any) -> None:
    """Raise if two columns have the same index in another order: rows are taken by their place, never by an index.

    Columns with other indexes are no contradiction: predictions are numbered anew, labels keep that of their table.

    Raises:
        ValueError: With the names of the two.

    Example:
        >>> check_same_order("doc", probs=[0.5], labels=[1])
    """
    indexes = {
        name: column.index
        for name, column in columns.items()
        if hasattr(getattr(column, "index", None), "equals")
    }
    for name, index in list(indexes.items())[1:]:
        first, known = next(iter(indexes.items()))
        if len(index) == len(known) and not index.equals(known) and index.isin(known).all():
            raise ValueError(
                f"{where}: `{name}` has the index of `{first}` in another order, and rows are taken by their place. "
                f"Pass {name}.loc[{first}.index], or .to_numpy() of both if the places are right."
            )
