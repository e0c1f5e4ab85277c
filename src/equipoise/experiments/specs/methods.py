"""A method by name: which objective, and which loss inside it; names of the catalogue, sums of them, code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from equipoise.catalogue import CATALOGUE, Entry, failed_plugins, is_code, sum_entry
from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.experiments.code.adapters import Code, UserLoss
from equipoise.experiments.code.names import is_sum, split_reference
from equipoise.experiments.specs.parsing import number_keys
from equipoise.experiments.specs.run import MethodSpec, Spec

__all__ = ["EntryWithParameters", "code_of", "method_entry", "split_method"]


class EntryWithParameters(NamedTuple):
    """An entry and the parameters that differ from its main setting.

    Attributes:
        entry: From the catalogue.
        parameters: Given by the spec.
    """

    entry: Entry
    parameters: Mapping[str, Any]

    def make(self, **more: Any) -> Any:
        """Build it; tables whose keys are numbers, which TOML writes as text, have numbers as keys."""
        return self.entry.make(**{**number_keys(self.parameters), **more})


def code_of(name: str, spec: Spec | None) -> Code:
    """Return code by name, with the folder and the content that a spec has for it.

    Example:
        >>> code_of("net.py:Net", None).name
        'net.py:Net'
    """
    if spec is None:
        return Code(name)
    source, _ = split_reference(name)
    if spec.code and source not in spec.code:
        raise SpecError(
            f"{name}: the spec has digests of its code, but none of {source}. Give the command again."
        )
    return Code(name, spec.home, spec.code.get(source, ""))


def split_method(
    method: MethodSpec, spec: Spec | None = None
) -> tuple[EntryWithParameters, EntryWithParameters | None]:
    """Return the objective and the loss that a method's name stands for; nothing is loaded.

    A loss's name means that loss under supervised training, and so does a sum such as ``"focal+0.5*mdca"``.

    Args:
        method: The method.
        spec: The spec that has it, which knows where its code is.

    Raises:
        SpecError: If there is no such method, or a penalty would stand alone.

    Example:
        >>> objective, loss = split_method(MethodSpec(name="focal"))
        >>> objective.entry.key, loss.entry.key
        ('supervised', 'focal')
        >>> split_method(MethodSpec(name="focal+0.5*mdca"))[1].make().terms[1].factor
        0.5
    """
    inner = None
    if method.loss is not None:
        inner = EntryWithParameters(_loss_entry(method.loss, spec, what="loss"), method.loss_parameters)
    elif method.loss_parameters:
        raise SpecError(f"`loss_parameters` need a `loss` inside {method.name!r}. Name it.")
    if method.name in CATALOGUE["objectives"]:
        return EntryWithParameters(CATALOGUE["objectives"][method.name], method.parameters), inner
    if is_code(method.name) and not is_sum(method.name) and (inner or method.auxiliary):
        # Only objectives have a loss or a network beside their own.
        return EntryWithParameters(
            _code_entry(method.name, code_of(method.name, spec)), method.parameters
        ), inner
    if inner is not None or method.auxiliary is not None:
        raise SpecError(f"{method.name!r} is a loss; `loss` and `auxiliary` go with objectives.")
    entry = _loss_entry(method.name, spec, what="method")
    return EntryWithParameters(CATALOGUE["objectives"]["supervised"], {}), EntryWithParameters(
        entry, method.parameters
    )


def _loss_entry(name: str, spec: Spec | None, *, what: str) -> Entry:
    losses, penalties = CATALOGUE["losses"], CATALOGUE["penalties"]
    if name in losses:
        return losses[name]
    if is_sum(name):
        known = {**losses, **penalties}
        return sum_entry(name, partial(_term_entry, spec=spec), known=known, penalties=penalties)
    if is_code(name):
        return _code_entry(name, UserLoss(code_of(name, spec)))
    if name in penalties:
        sums = [key for key in losses if key.endswith(f"+{name}")]
        raise SpecError(
            f"{name!r} is a penalty that needs a loss beside it; use {' or '.join(map(repr, sums or [f'ce+{name}']))}."
        )
    known = {**losses, **(CATALOGUE["objectives"] if what == "method" else {})}
    hint = "`equipoise list losses` and `equipoise list objectives` show all; code is 'file.py:name'."
    return look_up(name, known, what=what, hint=hint, renamed=failed_plugins())


def _term_entry(name: str, *, spec: Spec | None) -> Entry:
    if is_code(name):
        return _code_entry(name, UserLoss(code_of(name, spec)))
    known = {**CATALOGUE["losses"], **CATALOGUE["penalties"]}
    return look_up(name, known, what="loss or penalty", renamed=failed_plugins())


def _code_entry(name: str, factory: Any) -> Entry:
    split_reference(name)
    return Entry(key=name, title=name, made_by=factory, fidelity="yours", summary="Code of your own.")


def method_entry(method: MethodSpec) -> Entry:
    """Return the entry that describes a method to people.

    Example:
        >>> method_entry(MethodSpec(name="focal")).title
        'Focal loss'
    """
    objective, loss = split_method(method)
    return objective.entry if loss is None or method.name == objective.entry.key else loss.entry
