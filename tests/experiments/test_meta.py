"""A part of tune for bilevel objectives, and data that are trained on whole."""

import pytest

from equipoise.core.errors import SpecError
from equipoise.experiments import ComparisonSpec, Spec, run_comparison
from equipoise.experiments.build.run_parts import build
from helpers import toys
from helpers.tiny_runs import QUICK, TABLE


def rows(source):
    return {int(row) for batch in source(**toys.WHERE) for row in batch.index}


def test_the_part_is_judged_by_nobody():
    table = {**TABLE, "method": "gamma_net", "recipe": {"name": "quick", "epochs": 1, "meta": 0.5}}
    whole = build(Spec.from_table({**TABLE, "method": "gamma_net"}))
    built = build(Spec.from_table(table))
    kept, learned = rows(built.tune), rows(built.objective.held_out._source)
    assert kept | learned == rows(whole.tune)
    assert not kept & learned
    assert abs(len(kept) - len(learned)) <= 10


def test_runs_without_it_keep_their_names():
    table = {**TABLE, "recipe": {"name": "quick", "epochs": 2}}
    explicit = {**table, "recipe": {**table["recipe"], "meta": 0.0}}
    assert Spec.from_table(table).identity == Spec.from_table(explicit).identity
    assert Spec.from_table({**table, "recipe": {"meta": 0.5}}).identity != Spec.from_table(table).identity


@pytest.mark.parametrize(("share", "sentence"), [(1.0, "must be below 1"), (-0.1, "must be at least 0")])
def test_shares_that_are_none_are_refused(share, sentence):
    with pytest.raises(SpecError, match=sentence):
        Spec.from_table({**TABLE, "recipe": {"meta": share}})


def test_data_without_calib_need_no_calibrator(tmp_path):
    data = {"name": "digits", "options": {"tune": 0, "calib": 0}}
    table = {**TABLE, "data": data, "recipe": {"name": "quick", "epochs": 1}}
    outcome = run_comparison(ComparisonSpec.from_table(table), tmp_path, **QUICK, workers=1)
    assert outcome.summary.failed == {}
    assert [row.calibrator for row in outcome.tables[0].rows] == ["identity"]
