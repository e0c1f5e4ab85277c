"""The shapes and dtypes that annotations promise are those that losses pass to each other."""

import importlib
import inspect
import pkgutil

import jaxtyping
import pytest
import torch
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from torch import Tensor

import equipoise
from equipoise.catalogue import CATALOGUE
from helpers.daily import daily

KINDS = {"Float": jaxtyping.Float, "Int": jaxtyping.Int, "Bool": jaxtyping.Bool}
ENTRIES = [
    pytest.param(entry, id=f"{package}-{entry.key}")
    for package in ("losses", "penalties")
    for entry in CATALOGUE[package].values()
]


def modules():
    """Give every module of ours that has shapes in its annotations."""
    for found in pkgutil.walk_packages(equipoise.losses.__path__, "equipoise.losses."):
        module = importlib.import_module(found.name)
        if "from jaxtyping import" in inspect.getsource(module):
            yield module


def checked(function, names):
    """Give a function that refuses what its annotations do not promise; other annotations are left alone."""
    shapes = {
        name: eval(text, names)
        for name, text in inspect.get_annotations(function).items()
        if any(f"{kind}[" in text for kind in KINDS)
    }
    copy = type(function)(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, function.__module__
    copy.__annotations__ = shapes
    return jaxtyping.jaxtyped(copy, typechecker=beartype)


@pytest.fixture
def shapes(monkeypatch):
    """Check shapes in all functions of losses, wherever they were imported to; give how many there are."""
    packages = list(modules())
    found = {}
    for module in packages:
        names = {**vars(module), **KINDS, "Tensor": Tensor}
        for value in vars(module).values():
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            if own and any(
                f"{kind}[" in str(text) for text in value.__annotations__.values() for kind in KINDS
            ):
                found[value] = checked(value, names)
    for module in packages:
        for name, value in list(vars(module).items()):
            if inspect.isfunction(value) and value in found:
                monkeypatch.setattr(module, name, found[value])
    return found


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("n_rows", daily([1, 7], keep=[7]))
def test_what_losses_pass_on_is_what_they_promise(entry, n_rows, shapes):
    more = {"n_classes": 5} if "n_classes" in entry.needs else {}
    loss = entry.make(**more)
    logits = torch.randn(n_rows, 5, requires_grad=True, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(n_rows) % 5
    loss(logits, labels).backward()
    if hasattr(loss, "update"):
        loss.update(logits.detach(), labels)


def test_a_broken_promise_is_noticed(shapes):
    from equipoise.losses import focal

    with pytest.raises((BeartypeCallHintViolation, jaxtyping.TypeCheckError)):
        focal.focal_loss(torch.zeros(3, 2), torch.zeros(4, dtype=torch.long))
    with pytest.raises((BeartypeCallHintViolation, jaxtyping.TypeCheckError)):
        focal.focal_loss(torch.zeros(3, 2), torch.zeros(3))
    assert len(shapes) > 40
