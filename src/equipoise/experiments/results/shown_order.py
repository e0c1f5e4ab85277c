"""The order in which a comparison shows its methods and calibrators: written beside its runs, read by tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from equipoise.experiments.runs.folder import RunFolder
from equipoise.experiments.runs.json_files import check_content, read_json, write_json

__all__ = ["ShownOrder", "orders_beside", "write_order"]

_ENDING = ".order.json"
_CONTENT = {"methods": [str], "calibrators": [str], "baseline": str}


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
    write_json(folder / f"{name}{_ENDING}", asdict(order))


def orders_beside(runs: Iterable[RunFolder]) -> list[ShownOrder]:
    """Return the orders of the comparisons that lie beside runs; nothing for runs of no comparison.

    Raises:
        DataError: If a file of them is damaged.
    """
    folders = sorted({run.path.parent for run in runs})
    found = []
    for file in (file for folder in folders for file in sorted(folder.glob(f"*{_ENDING}"))):
        content = read_json(file)
        check_content(content, _CONTENT, where=str(file))
        methods, calibrators = (tuple(content[key]) for key in ("methods", "calibrators"))
        found.append(ShownOrder(methods=methods, calibrators=calibrators, baseline=content["baseline"]))
    return found
