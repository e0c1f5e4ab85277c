"""One method = one file, one test, one entry, one page: the folders are walked, and nothing may be missing."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

from equipoise.calibrators import CalibrationByGroup, Calibrator, OwnCalibrator, PriorShift
from equipoise.catalogue import CATALOGUE
from equipoise.data import READERS
from equipoise.losses import Loss, Penalty
from equipoise.training import Objective

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = [(category, entry) for category, table in CATALOGUE.items() for entry in table.values()]
PAGES = {"penalties": "losses"}


def methods(category, *bases):
    """Give every module of a category that defines a final method, and the class."""
    package = importlib.import_module(f"equipoise.{category}")
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"equipoise.{category}.{found.name}")
        for _, value in inspect.getmembers(module, inspect.isclass):
            own = (
                value.__module__ == module.__name__
                and issubclass(value, bases)
                and not inspect.isabstract(value)
            )
            if own and value not in bases and not value.__name__.startswith("_"):
                yield found.name, value


def mentions(category, name):
    """Whether a test of a category is about a module."""
    return any((ROOT / "tests" / category).glob(f"test_{name}*.py"))


@pytest.mark.parametrize(("category", "entry"), [pytest.param(r, e, id=f"{r}-{e.key}") for r, e in ENTRIES])
def test_every_entry_is_complete_and_has_a_page(category, entry):
    assert CATALOGUE[category][entry.key] is entry
    assert entry.title
    assert entry.summary.endswith((".", ")"))
    assert callable(entry.factory)
    known = inspect.signature(entry.factory).parameters
    assert set(entry.options) <= set(known), "the main setting names options that do not exist"
    repeated = [
        name for name, value in entry.options.items() if known[name].default == value and not entry.sum
    ]
    assert not repeated, "the factory's default is this already"
    page = ROOT / "docs" / "methods" / PAGES.get(category, category) / f"{entry.key.replace('+', '-')}.md"
    assert page.exists()


@pytest.mark.parametrize(
    ("category", "tables", "bases"),
    [
        ("losses", ("losses", "penalties"), (Loss, Penalty)),
        ("calibrators", ("calibrators",), (Calibrator,)),
    ],
)
def test_every_method_has_an_entry_and_a_test(category, tables, bases):
    factories = [entry.factory for table in tables for entry in CATALOGUE[table].values()]
    found = list(methods(category, *bases))
    assert found
    for name, value in found:
        if value in (
            OwnCalibrator,
            PriorShift,
            CalibrationByGroup,
        ):  # hold the user's code, or what no spec has
            continue
        assert value in factories, f"equipoise.{category}.{value.__name__} has no entry in the catalogue"
        assert mentions(category, name), f"tests/{category}/test_{name}.py is missing"


def test_every_objective_has_an_entry_and_a_test():
    found = list(methods("objectives", Objective))
    assert {name for name, _ in found} == set(CATALOGUE["objectives"])
    assert all(mentions("objectives", name) for name, _ in found)


def test_every_dataset_has_an_entry():
    assert set(CATALOGUE["datasets"]) == set(READERS)
