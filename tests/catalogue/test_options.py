"""Options read from the source are those that Python sees."""

import ast
import inspect
import re

import pytest

from equipoise.catalogue import CATALOGUE, options_of

ENTRIES = [
    pytest.param(entry, id=f"{category}-{entry.key}")
    for category, table in CATALOGUE.items()
    for entry in table.values()
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_names_and_defaults_are_those_of_the_signature(entry):
    known = inspect.signature(entry.factory).parameters
    found = {option.name: option.default for option in options_of(entry)}
    assert set(found) == set(known)
    for name, default in found.items():
        assert bool(default) == (known[name].default is not inspect.Parameter.empty), name
        if isinstance(known[name].default, bool | int | float | str | None):
            assert ast.literal_eval(default) == known[name].default, name


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_parameter_has_a_meaning_without_markup(entry):
    for option in options_of(entry):
        assert option.meaning, option.name
        assert not re.search(r"`|\*\w+\*", option.meaning)
