"""Methods by name: which objective, and which loss inside it."""

import pytest

from equipoise.core.errors import SpecError
from equipoise.experiments import Component, MethodSpec
from equipoise.experiments.specs.methods import method_entry, split_method


def test_an_unknown_name_is_answered_with_the_nearest_one():
    with pytest.raises(SpecError, match="no method 'mutual_lerning'; did you mean 'mutual_learning'"):
        split_method(MethodSpec(name="mutual_lerning"))
    with pytest.raises(SpecError, match="no loss 'focall'; did you mean 'focal'"):
        split_method(MethodSpec(name="mutual_learning", loss=Component(name="focall")))


def test_a_loss_is_supervised_and_an_objective_keeps_its_loss():
    loss = Component(name="focal", options={"gamma": 2.0})
    assert split_method(MethodSpec(name="focal", options={"gamma": 2.0})) == (
        Component(name="supervised"),
        loss,
    )
    assert split_method(MethodSpec(name="pruned", loss=loss)) == (Component(name="pruned"), loss)
    assert method_entry(MethodSpec(name="pruned", loss=loss)).key == "pruned"
    assert method_entry(MethodSpec(name="focal")).key == "focal"
