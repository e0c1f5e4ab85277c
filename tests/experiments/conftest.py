"""Tiny experiments."""

import copy

import pytest

from equipoise.experiments import Spec
from helpers.tiny_runs import QUICK, TABLE


@pytest.fixture
def table():
    return copy.deepcopy(TABLE)


@pytest.fixture
def spec(table):
    return Spec.from_table(table)


@pytest.fixture
def quick():
    return QUICK
