import pytest

from equipoise.core.errors import SpecError
from equipoise.experiments.specs.methods import split_method
from equipoise.experiments.specs.run import MethodSpec


def test_a_former_key_is_answered_by_a_sentence():
    with pytest.raises(SpecError, match=r"no method 'logit_norm'; it is 'logit_penalty' now"):
        split_method(MethodSpec(name="logit_norm"))
    with pytest.raises(SpecError, match=r"'logit_penalty' now"):
        split_method(MethodSpec(name="mutual_learning", loss="logit_norm"))
