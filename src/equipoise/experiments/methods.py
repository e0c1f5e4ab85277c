"""A method by name: which objective, and which loss inside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from equipoise.core.errors import SpecError
from equipoise.core.names import look_up
from equipoise.experiments.catalogue import CATALOGUE, Entry
from equipoise.experiments.catalogue.losses import RENAMED
from equipoise.experiments.spec import MethodSpec

__all__ = ["Chosen", "method_entry", "split_method"]


class Chosen(NamedTuple):
    """An entry and the parameters that differ from its main setting.

    Attributes:
        entry: From the catalogue.
        parameters: Given by the spec.
    """

    entry: Entry
    parameters: Mapping[str, Any]

    def make(self, **more: Any) -> Any:
        """Build it."""
        return self.entry.make(**{**self.parameters, **more})


def split_method(method: MethodSpec) -> tuple[Chosen, Chosen | None]:
    """Return the objective and the loss that a method's name stands for.

    A loss's name means that loss under supervised training.

    Raises:
        SpecError: If there is no such method, or a penalty would stand alone.

    Example:
        >>> objective, loss = split_method(MethodSpec(name="focal"))
        >>> objective.entry.key, loss.entry.key
        ('supervised', 'focal')
    """
    losses = {**CATALOGUE["losses"], **CATALOGUE["pairs"]}
    if method.name in CATALOGUE["objectives"]:
        inner = None
        if method.loss is not None:
            inner = Chosen(look_up(method.loss, losses, what="loss", renamed=RENAMED), method.loss_parameters)
        elif method.loss_parameters:
            raise SpecError(f"`loss_parameters` need a `loss` inside {method.name!r}. Name it.")
        return Chosen(CATALOGUE["objectives"][method.name], method.parameters), inner
    if method.name in CATALOGUE["penalties"]:
        pairs = [key for key in CATALOGUE["pairs"] if key.endswith(f"+{method.name}")]
        raise SpecError(
            f"{method.name!r} is a penalty that needs a loss beside it; "
            f"{'use ' + ' or '.join(map(repr, pairs)) if pairs else 'no ready pair is known'}."
        )
    if method.loss is not None or method.auxiliary is not None:
        raise SpecError(f"{method.name!r} is a loss; `loss` and `auxiliary` go with objectives.")
    known = {**losses, **CATALOGUE["objectives"]}
    hint = "`equipoise list losses` and `equipoise list objectives` show all."
    entry = look_up(method.name, known, what="method", hint=hint, renamed=RENAMED)
    return Chosen(CATALOGUE["objectives"]["supervised"], {}), Chosen(entry, method.parameters)


def method_entry(method: MethodSpec) -> Entry:
    """Return the entry that describes a method to people.

    Example:
        >>> method_entry(MethodSpec(name="focal")).title
        'Focal loss'
    """
    objective, loss = split_method(method)
    return objective.entry if loss is None or method.name == objective.entry.key else loss.entry
