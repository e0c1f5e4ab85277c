"""A method by name: which objective, and which loss inside it; names of the catalogue, sums of them, code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from torch import nn

from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.experiments.catalogue import CATALOGUE, Entry, missing_names
from equipoise.experiments.code.adapters import Code, UserLoss, check_keywords
from equipoise.experiments.code.names import NamedTerm, is_code, is_sum, split_reference, split_sum
from equipoise.experiments.specs.parsing import number_keys
from equipoise.experiments.specs.run import MethodSpec, Spec
from equipoise.losses import Part, make_sum

__all__ = ["EntryWithParameters", "SumFactory", "code_of", "method_entry", "split_method"]


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
        inner = _with_parameters(_loss_entry(method.loss, spec, what="loss"), method.loss_parameters)
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
    return EntryWithParameters(CATALOGUE["objectives"]["supervised"], {}), _with_parameters(
        entry, method.parameters
    )


def _with_parameters(entry: Entry, parameters: Mapping[str, Any]) -> EntryWithParameters:
    """Return a loss with its parameters; parts of a ready pair may have tables of their own, as in any sum."""
    parts = entry.key.split("+") if entry.key in CATALOGUE["pairs"] else []
    tables = {key: value for key, value in parameters.items() if key in parts and isinstance(value, Mapping)}
    flat = {key: value for key, value in parameters.items() if key not in tables}
    for part, table in tables.items():
        for key, value in table.items():
            if key in flat:
                raise SpecError(
                    f"{entry.key!r}: {key!r} is given twice. Give it once, in the table of {part!r}."
                )
            flat[key] = value
    return EntryWithParameters(entry, flat)


def _loss_entry(name: str, spec: Spec | None, *, what: str) -> Entry:
    losses = {**CATALOGUE["losses"], **CATALOGUE["pairs"]}
    if name in losses:
        return losses[name]
    if is_sum(name):
        return _sum_entry(name, spec)
    if is_code(name):
        return _code_entry(name, UserLoss(code_of(name, spec)))
    if name in CATALOGUE["penalties"]:
        pairs = [key for key in losses if key.endswith(f"+{name}")]
        raise SpecError(
            f"{name!r} is a penalty that needs a loss beside it; use {' or '.join(map(repr, pairs or [f'ce+{name}']))}."
        )
    known = {**losses, **(CATALOGUE["objectives"] if what == "method" else {})}
    hint = "`equipoise list losses` and `equipoise list objectives` show all; code is 'file.py:name'."
    return look_up(name, known, what=what, hint=hint, renamed=missing_names())


def _code_entry(name: str, factory: Any) -> Entry:
    split_reference(name)
    return Entry(key=name, title=name, made_by=factory, fidelity="yours", summary="Code of your own.")


@final
@dataclass(frozen=True)
class SumFactory:
    """Makes a sum of losses and terms; parameters are those of each part, by its name.

    Attributes:
        parts: Entry and strength of each part.

    Example:
        >>> entry = CATALOGUE["losses"]["focal"]
        >>> SumFactory(((entry, 2.0),))(focal={"gamma": 1.0}).terms[0].term.gamma
        1.0
    """

    parts: tuple[tuple[Entry, float | None], ...]

    def __call__(
        self, n_classes: int | None = None, ignore_index: int = -100, **parameters: Any
    ) -> nn.Module:
        """Return the sum."""
        made = (
            Part(entry.factory, {**entry.parameters, **parameters.get(entry.key, {})}, strength)
            for entry, strength in self.parts
        )
        return make_sum(*made, ignore_index=ignore_index, n_classes=n_classes)

    def check(self, parameters: Mapping[str, Any]) -> None:
        """Raise if a part is not there, or has no such parameter.

        Raises:
            SpecError: With the nearest name.
        """
        known = {entry.key: entry for entry, _ in self.parts}
        for key, given in parameters.items():
            if key not in known or not isinstance(given, Mapping):
                raise SpecError(
                    f"parameters of a sum are tables by part ({', '.join(known)}), for example "
                    f"{{ {next(iter(known))} = {{ ... }} }}, got {key} = {given!r}."
                )
            if not isinstance(known[key].factory, UserLoss):
                check_keywords(known[key].factory, given, name=key)


def _sum_entry(name: str, spec: Spec | None) -> Entry:
    parts = tuple(_term(term, name, spec) for term in split_sum(name))
    keys = [entry.key for entry, _ in parts]
    if len(set(keys)) < len(keys):
        raise SpecError(f"{name!r} names a part twice. Add their strengths.")
    if all(key in CATALOGUE["penalties"] for key in keys):
        raise SpecError(f"{name!r} holds penalties only, which need a loss beside them; use 'ce+{name}'.")
    return Entry(
        key=name,
        title=" + ".join(
            entry.title if strength is None else f"{strength:g} x {entry.title}" for entry, strength in parts
        ),
        made_by=SumFactory(parts),
        fidelity="yours" if any(map(is_code, keys)) else "ours",
        summary=f"The sum of {', '.join(keys)}.",
        needs=frozenset(need for entry, _ in parts for need in entry.needs),
    )


def _term(term: NamedTerm, whole: str, spec: Spec | None) -> tuple[Entry, float | None]:
    strength, name = term
    if not name or strength == "":
        raise SpecError(f"{whole!r}: {name!r} is no part of a sum. Write 'focal+0.5*mdca'.")
    known = {**CATALOGUE["losses"], **CATALOGUE["penalties"]}
    if is_code(name):
        entry = _code_entry(name, UserLoss(code_of(name, spec)))
    else:
        entry = look_up(name, known, what="loss or penalty", renamed=missing_names())
    try:
        number = 1.0 if strength is None else float(strength)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SpecError(f"{whole!r}: {strength!r} is no number. Write 'focal+0.5*mdca'.")
    return entry, None if strength is None else number


def method_entry(method: MethodSpec) -> Entry:
    """Return the entry that describes a method to people.

    Example:
        >>> method_entry(MethodSpec(name="focal")).title
        'Focal loss'
    """
    objective, loss = split_method(method)
    return objective.entry if loss is None or method.name == objective.entry.key else loss.entry
