"""Methods by name: which objective, and which loss inside it. Nothing is imported beyond the catalogue."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.catalogue import CATALOGUE, Entry, add_plugins, failed_plugins, is_code, sum_entry
from equipoise.core.errors import SpecError, located
from equipoise.core.names import look_up
from equipoise.experiments.code.component import Component, is_sum
from equipoise.experiments.code.source import split_reference
from equipoise.experiments.specs.run import MethodSpec, Spec

__all__ = ["check_names", "find_entry", "find_loss_entry", "method_entry", "own_entry", "split_method"]


def split_method(method: MethodSpec) -> tuple[Component, Component | None]:
    """Return the objective and the loss that a method's name stands for.

    A loss's name means that loss under supervised training, and so does a sum such as ``"focal+0.5*mdca"``. Code that
    stands alone is returned as a loss; whether it is an objective is known when it is loaded.

    Raises:
        SpecError: If there is no such method, or a penalty would stand alone.

    Example:
        >>> objective, loss = split_method(MethodSpec(name="focal"))
        >>> objective.name, loss.name
        ('supervised', 'focal')
    """
    own = Component(name=method.name, options=method.options)
    if method.loss is not None:
        find_loss_entry(method.loss.name, what="loss")
    if method.name in CATALOGUE["objectives"]:
        return own, method.loss
    if is_code(method.name) and not is_sum(method.name) and (method.loss or method.auxiliary):
        split_reference(method.name)
        return own, method.loss  # only objectives have a loss or another network
    if method.loss is not None or method.auxiliary is not None:
        raise SpecError(f"{method.name!r} is a loss; `loss` and `auxiliary` go with objectives.")
    find_loss_entry(method.name, what="method")
    return Component(name="supervised"), own


def own_entry(name: str) -> Entry:
    """Return the entry of the user's own code, which is not loaded.

    Example:
        >>> own_entry("loss.py:Mine").fidelity
        'yours'
    """
    split_reference(name)
    return Entry(key=name, title=name, made_by=name, fidelity="yours", summary="Code of your own.")


def find_loss_entry(name: str, *, what: str = "loss", own: Callable[[str], Entry] = own_entry) -> Entry:
    """Return the entry of a loss, a sum or code.

    Args:
        name: As in a spec.
        what: ``"method"`` looks among the objectives, too, for the nearest name.
        own: Returns the entry of code.

    Raises:
        SpecError: With the nearest name; or if it is a penalty, which needs a loss.

    Example:
        >>> find_loss_entry("2*focal").title
        '2 x Focal loss'
    """
    losses, penalties = CATALOGUE["losses"], CATALOGUE["penalties"]
    if name in losses:
        return losses[name]
    known = {**losses, **penalties}

    def find_term(term: str) -> Entry:
        if is_code(term):
            return own(term)
        return look_up(term, known, what="loss or penalty", renamed=failed_plugins())

    if is_sum(name):
        return sum_entry(name, find_term, known=known, penalties=penalties)
    if is_code(name):
        return own(name)
    if name in penalties:
        sums = [key for key in losses if key.endswith(f"+{name}")] or [f"ce+{name}"]
        raise SpecError(f"{name!r} is a penalty, which needs a loss; use {' or '.join(map(repr, sums))}.")
    hint = "`equipoise list losses` and `equipoise list objectives` show all; code is 'file.py:name'."
    named = {**losses, **(CATALOGUE["objectives"] if what == "method" else {})}
    return look_up(name, named, what=what, hint=hint, renamed=failed_plugins())


def find_entry(name: str, category: str, *, what: str, where: str) -> Entry | None:
    """Return the entry of a dataset or network; None for code, of which more is known only when it has run.

    Raises:
        SpecError: With the nearest name.

    Example:
        >>> find_entry("mlp", "models", what="model", where="doc").key
        'mlp'
    """
    hint = f"`equipoise list {category}` shows all; code of your own is 'file.py:name'."
    with located(where):
        if not is_code(name):
            return look_up(name, CATALOGUE[category], what=what, hint=hint, renamed=failed_plugins())
        split_reference(name)
        return None


def method_entry(method: MethodSpec) -> Entry:
    """Return the entry that describes a method to people.

    Example:
        >>> method_entry(MethodSpec(name="focal")).title
        'Focal loss'
    """
    if method.name in CATALOGUE["objectives"]:
        return CATALOGUE["objectives"][method.name]
    return find_loss_entry(method.name, what="method")


def check_names(spec: Spec, *, where: str) -> None:
    """Raise unless the names of a spec are known here.

    Raises:
        SpecError: With file, key and nearest valid name.

    Example:
        >>> check_names(Spec.from_table({"data": "digits", "model": "mlp"}), where="doc")
    """
    add_plugins()
    find_entry(spec.data.name, "datasets", what="dataset", where=f"{where}.data.name")
    for key, model in (("model", spec.model), ("method.auxiliary", spec.method.auxiliary)):
        if model is not None:
            find_entry(model.name, "models", what="model", where=f"{where}.{key}.name")
    with located(f"{where}.method.name"):
        split_method(spec.method)
