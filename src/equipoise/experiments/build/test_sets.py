"""Additional test sets of a run: corrupted, shifted or out of distribution."""

from __future__ import annotations

from dataclasses import replace

from equipoise.catalogue import is_code
from equipoise.data import Dataset, Shift, load_shift
from equipoise.experiments.build.data import load_data
from equipoise.experiments.code.component import Component
from equipoise.experiments.specs.execution import Execution
from equipoise.experiments.specs.run import DataSpec, Spec

__all__ = ["load_other_data", "make_test_set"]


def load_other_data(shift: Shift, spec: Spec, execution: Execution) -> Dataset:
    """Return the other dataset that an additional test set is of; test sets of one process share it.

    Args:
        shift: A test set that names data.
        spec: The run, whose folder files of code are relative to and whose split seed is used.
        execution: The data folder, and whether to download.

    Example:
        >>> spec = Spec.from_table({"data": "digits", "model": "mlp"})
        >>> load_other_data(Shift(name="a", kind="ood", data="digits"), spec, Execution()).name
        'digits'
    """
    code = Component(name=shift.data, base_dir=spec.base_dir).pinned() if is_code(shift.data) else None
    data = DataSpec(name=shift.data, seed=spec.data.seed, options=shift.options)
    return load_data(data, execution, code=code, only_test=True)


def make_test_set(
    shift: Shift, clean: Dataset, other: Dataset | None, spec: Spec, execution: Execution
) -> Dataset:
    """Return the rows of an additional test set, for networks that were trained on a dataset.

    Args:
        shift: Which test set.
        clean: The dataset that networks were trained on.
        other: The data that the test set is of, if it names data.
        spec: The run, whose split seed is used.
        execution: The data folder, and whether to download.
    """
    if other is not None and is_code(shift.data) and shift.kind == "shifted":
        missing = clean.n_classes - other.n_classes  # arrays may have no row of the last classes
        other = replace(other, class_names=clean.class_names) if missing > 0 else other
    return load_shift(
        shift, clean, other=other, root=execution.root, seed=spec.data.seed, download=execution.download
    )
