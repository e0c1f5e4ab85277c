"""Calibrators by group: the formula, the choice of the strength, fallbacks, files, commands, and a simulation."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.calibrators import (
    CalibrationByGroup,
    Calibrator,
    IsotonicCalibration,
    PlattScaling,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
    choose,
    from_artifact,
    load,
)
from equipoise.cli import main
from equipoise.core.errors import DataError, SplitError


def draw(rng: np.random.Generator, sizes: list[int], factors: list[float], k: int = 3) -> Predictions:
    """Return rows of groups 0, 1, ... whose logits are too large by the factor of their group."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    logits = 2 * rng.normal(size=(len(codes), k))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    wide = logits * np.array(factors)[codes][:, None]
    return Predictions(logits=wide, labels=labels, groups={"site": codes.astype(str)})


def nll(rows: Predictions) -> float:
    return float(-rows.log_probs[np.arange(len(rows)), rows.labels].mean())


def fitted(rows: Predictions, base: Calibrator | None = None) -> CalibrationByGroup:
    return CalibrationByGroup(base=base or TemperatureScaling(), by="site").fit(rows)


@pytest.fixture(scope="module")
def rows() -> Predictions:
    return draw(np.random.default_rng(0), [400, 400, 60, 5], [1.0, 3.0, 2.0, 9.0])


def test_a_row_is_mixed_by_the_rows_of_its_group(rows):
    calibrator = fitted(rows)
    found = calibrator.result.parameters
    assert calibrator.result.groups == ("0", "1", "2")  # five rows are too few
    share = found["share"][1:]
    strength = 60 / share[2] - 60 if share[2] < 1 else 0.0
    np.testing.assert_allclose(share, [n / (n + strength) for n in (400, 400, 60)])
    pooled = TemperatureScaling().fit(rows).result.parameters["temperature"]
    np.testing.assert_allclose(found["each_temperature"][0, 0], pooled)
    for place in range(3):
        own = rows.take(rows.groups["site"] == str(place))
        alone = TemperatureScaling().fit(own).result.parameters["temperature"]
        expected = own.logits * ((1 - share[place]) / pooled + share[place] / alone)
        np.testing.assert_allclose(calibrator(own).logits, expected)
    few = rows.take(rows.groups["site"] == "3")
    np.testing.assert_allclose(calibrator(few).logits, few.logits / pooled)
    assert "1 with fewer than 20 rows use that of all rows" in calibrator.result.words


def test_an_unseen_group_uses_the_calibrator_of_all_rows(rows):
    calibrator = fitted(rows)
    new = Predictions(logits=rows.logits[:3], groups={"site": ["x", "y", "0"]})
    pooled = calibrator.result.parameters["each_temperature"][0, 0]
    np.testing.assert_allclose(calibrator(new).logits[:2], rows.logits[:2] / pooled)
    assert calibrator.groups_without_own(new) == {"x": 1, "y": 1}


def test_equal_groups_share_one_calibrator():
    rows = draw(np.random.default_rng(2), [100] * 8, [2.0] * 8)
    calibrator = fitted(rows)
    assert calibrator.result.groups == ()
    assert "no difference between groups is shown" in calibrator.result.words
    np.testing.assert_allclose(calibrator(rows).logits, TemperatureScaling().fit(rows)(rows).logits)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "base", [TemperatureScaling(), VectorScaling(), StructuredMatrixScaling(), PlattScaling()]
)
def test_never_worse_than_all_rows_by_cross_validation(seed, base):
    rng = np.random.default_rng(seed)
    rows = draw(rng, rng.integers(5, 120, 5).tolist(), np.exp(0.5 * rng.normal(size=5)).tolist())
    by_group = CalibrationByGroup(base=copy.copy(base), by="site")
    strength, _ = by_group._choose_strength(
        rows, rows.groups["site"].astype(int), np.ones(len(rows)), claims=False
    )
    assert strength == np.inf or strength >= 0
    by_group.fit(rows)
    result = by_group.result
    assert result.nll_after <= result.nll_before
    assert result.nll_after == pytest.approx(nll(by_group(rows)), abs=1e-9)
    assert bool(result.groups) == bool(np.isfinite(strength))
    # Mixing is convex: a group's loss is at most the mean of both calibrators' losses, weighted by its share.
    for place, name in enumerate(result.groups, 1):
        own = rows.take(rows.groups["site"] == name)
        share = result.parameters["share"][place]
        alone, pooled = (nll(copy.copy(base).fit(part)(own)) for part in (own, rows))
        assert nll(by_group(own)) <= share * alone + (1 - share) * pooled + 1e-9


def test_opposite_groups_are_mended_where_all_rows_need_nothing():
    rows = draw(np.random.default_rng(3), [500, 500], [0.5, 1.6])
    assert nll(fitted(rows)(rows)) < nll(TemperatureScaling().fit(rows)(rows)) - 0.02


def test_weights_count_as_rows(rows):
    doubled = fitted(rows.with_weights(np.full(len(rows), 2.0))).result
    assert doubled.parameters["each_temperature"] == pytest.approx(
        fitted(rows).result.parameters["each_temperature"]
    )
    only = np.where(rows.groups["site"] == "0", 1.0, 0.0)
    assert "1" not in fitted(rows.with_weights(only)).result.groups


def test_order_of_rows_and_names_of_groups_do_not_matter(rows):
    again = Predictions(
        logits=rows.logits, labels=rows.labels, groups={"site": np.char.add("z", rows.groups["site"])}
    )
    renamed = fitted(again)
    assert renamed.result.groups == ("z0", "z1", "z2")
    np.testing.assert_array_equal(renamed(again).logits, fitted(rows)(rows).logits)
    # Groups that are numbers in one file and text in the next are the same.
    numbers = Predictions(logits=rows.logits, groups={"site": rows.groups["site"].astype(int)})
    np.testing.assert_array_equal(fitted(rows)(numbers).logits, fitted(rows)(rows).logits)


def test_confidences_alone_have_groups_too():
    rng = np.random.default_rng(5)
    confidence = rng.uniform(0.3, 0.99, 800)
    subject = np.repeat(["law", "math"], 400)
    right = rng.random(800) < np.where(subject == "law", confidence, 0.5 * confidence)
    claims = Predictions(confidence=confidence, correct=right, groups={"subject": subject})
    calibrator = CalibrationByGroup(base=PlattScaling(), by="subject").fit(claims)
    after = calibrator(claims).confidence
    for name in ("law", "math"):
        own = subject == name
        assert after[own].mean() == pytest.approx(right[own].mean(), abs=0.02)


@pytest.mark.parametrize("ending", [".json", ".safetensors"])
@pytest.mark.parametrize("base", [TemperatureScaling(), StructuredMatrixScaling()])
def test_files_keep_everything(rows, tmp_path, ending, base):
    calibrator = fitted(rows, copy.copy(base))
    calibrator.save(tmp_path / f"map{ending}")
    again = load(tmp_path / f"map{ending}")
    assert again.result.groups == calibrator.result.groups
    assert again.result.words == calibrator.result.words
    np.testing.assert_array_equal(again(rows).logits, calibrator(rows).logits)
    assert again.fitted_on(rows.rows).shared(rows.rows)


def test_forged_files_are_refused(rows):
    content = fitted(rows).to_artifact()
    for change in (
        lambda one: one["settings"].pop("by"),
        lambda one: one["settings"].update(by=3),
        lambda one: one["settings"].update(base={"kind": "isotonic", "settings": {}}),
        lambda one: one["settings"].update(base={"kind": "by_group", "settings": {}}),
        lambda one: one["result"]["groups"].pop(),
        lambda one: one["result"].update(groups=["0", "0", "2"]),
        lambda one: one["parameters"]["share"]["values"].__setitem__(1, 1.5),
        lambda one: one["parameters"]["used"]["values"].__setitem__(1, 0.5),
        lambda one: one["parameters"]["each_temperature"]["values"].__setitem__(1, -1.0),
    ):
        forged = json.loads(json.dumps(content))
        change(forged)
        with pytest.raises(DataError, match="damaged"):
            from_artifact(forged)


def test_mistakes_have_their_remedy(rows):
    with pytest.raises(ValueError, match=r"fixed number of parameters, got 'isotonic'\. Use temperature"):
        CalibrationByGroup(base=IsotonicCalibration(), by="site")
    with pytest.raises(DataError, match=r"'city' is missing, got site\. Give it in `groups`"):
        CalibrationByGroup(base=TemperatureScaling(), by="city").fit(rows)
    calibrator = fitted(rows)
    with pytest.raises(DataError, match="arrays and networks do not have groups"):
        calibrator(rows.logits)
    with pytest.raises(DataError, match="'site' is missing, got none"):
        calibrator(Predictions(logits=rows.logits))
    with pytest.raises(SplitError, match="test"):
        fitted(rows.with_split("test"))


def test_a_network_has_no_groups(rows):
    pytest.importorskip("torch")
    with pytest.raises(DataError, match="arrays and networks do not have groups"):
        fitted(rows).as_module()


def test_the_advisor_takes_it_as_a_candidate(rows):
    candidates = ["temperature", CalibrationByGroup(base=TemperatureScaling(), by="site")]
    assert choose(rows, candidates=candidates).calibrator.kind == "by_group"


def test_commands_calibrate_and_apply_by_group(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for file, sites in (("calib.csv", "ab"), ("today.csv", "bc")):
        found = draw(rng, [300, 300], [1.0, 3.0] if file == "calib.csv" else [3.0, 1.0])
        lines = [
            f"{sites[int(site)]},{','.join(map(repr, map(float, row)))},{label}"
            for site, row, label in zip(found.groups["site"], found.logits, found.labels, strict=True)
        ]
        (tmp_path / file).write_text("\n".join(["site,logit_0,logit_1,logit_2,label", *lines]) + "\n")
    assert main(["calibrate", "calib.csv", "--by", "site", "--method", "temperature", "-o", "c.json"]) == 0
    assert "temperature for each of 2 groups of 'site'" in capsys.readouterr().out
    assert main(["apply", "c.json", "today.csv", "-o", "out.csv"]) == 0
    assert "used that of all rows: c (300 rows)" in capsys.readouterr().out
    one = np.loadtxt("out.csv", delimiter=",", skiprows=1, usecols=(1, 2, 3))
    raw = np.loadtxt("today.csv", delimiter=",", skiprows=1, usecols=(1, 2, 3))
    temperatures = load("c.json").result.parameters["each_temperature"][:, 0]
    np.testing.assert_allclose(one[300:], raw[300:] / temperatures[0], rtol=1e-5)
    assert main(["apply", "c.json", "today.csv", "-o", "out.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["groups_without_calibrator"] == {"c": 300}
    assert main(["calibrate", "calib.csv", "--by", "site", "-o", "auto.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["groups"] == ["a", "b"]
    for wrong in (["calibrate", "calib.csv", "--by", "city", "-o", "d.json"],
                  ["calibrate", "calib.csv", "--by", "site", "--method", "bbq", "-o", "d.json"]):  # fmt: skip
        assert main(wrong) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.simulation
def test_shrinkage_helps_on_fresh_rows():
    """Ten groups of 50 rows: no worse than all rows together, nor than each group alone."""
    for spread, least_gain in ((0.0, -0.0005), (0.3, 0.005)):
        gains, over_alone = [], []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            factors = np.exp(spread * rng.normal(size=10) + np.log(2)).tolist()
            calib, fresh = draw(rng, [50] * 10, factors), draw(rng, [2000] * 10, factors)
            shrunk = nll(fitted(calib)(fresh))
            gains.append(nll(TemperatureScaling().fit(calib)(fresh)) - shrunk)
            alone = CalibrationByGroup(base=TemperatureScaling(), by="site")
            alone._choose_strength = lambda *_, **__: (0.0, "")  # type: ignore[method-assign]
            over_alone.append(nll(alone.fit(calib)(fresh)) - shrunk)
        assert np.mean(gains) > least_gain
        error = np.std(over_alone) / 40**0.5
        assert np.mean(over_alone) > (2 * error if spread == 0 else -2 * error)
