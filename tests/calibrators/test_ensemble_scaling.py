"""The calibrator of ensembles with two parameters: limits, the gradient's zero, files, errors, and a simulation."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.calibrators import EnsembleScaling, TemperatureScaling, average_predictions
from equipoise.core.errors import DataError, NotFittedError, SplitError


def draw(
    seed: int, n: int = 600, *, members: int = 4, noise: float = 1.0, factor: float = 2.0
) -> list[Predictions]:
    """Return members that see the truth with noise of their own, and are overconfident by a factor."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return [
        Predictions(logits=factor * (logits + noise * rng.normal(size=logits.shape)), labels=labels)
        for _ in range(members)
    ]


def nll(rows: Predictions) -> float:
    return float(-rows.log_probs[np.arange(len(rows)), rows.labels].mean())


def by_loop(members: list[Predictions], temperature: float, spread: float) -> np.ndarray:
    result = []
    for i in range(len(members[0])):
        parts = [member.log_probs[i].astype(float) for member in members]
        center = sum(parts) / len(parts)
        scores = [(center + spread * (part - center)) / temperature for part in parts]
        result.append(sum(np.exp(score) / np.exp(score).sum() for score in scores) / len(parts))
    return np.array(result)


def test_it_is_the_formula_and_no_worse_than_the_average():
    members = draw(0, 60)
    calibrator = EnsembleScaling().fit(members)
    np.testing.assert_allclose(
        calibrator(members).probs, by_loop(members, calibrator.temperature, calibrator.spread), atol=1e-12
    )
    result = calibrator.result
    assert result.nll_before == pytest.approx(nll(average_predictions(members)), abs=1e-9)
    assert result.nll_after == pytest.approx(nll(calibrator(members)), abs=1e-9)
    assert result.nll_after <= result.nll_before


def test_the_parameters_are_a_minimum():
    members = draw(1)
    calibrator = EnsembleScaling().fit(members)
    labels, rows = members[0].labels, np.arange(len(members[0]))

    def loss(temperature: float, spread: float) -> float:
        return float(-np.log(by_loop(members, temperature, spread)[rows, labels]).mean())

    least = loss(calibrator.temperature, calibrator.spread)
    for change in ((1.05, 1.0), (0.95, 1.0), (1.0, 1.1), (1.0, 0.9)):
        assert loss(calibrator.temperature * change[0], calibrator.spread * change[1]) > least - 1e-7


def test_equal_members_are_calibrated_as_one():
    one = draw(2)[0]
    calibrator = EnsembleScaling().fit([one, one, one])
    assert calibrator.temperature == pytest.approx(TemperatureScaling().fit(one).temperature, rel=1e-3)


def test_order_of_members_and_one_column_do_not_matter():
    members = draw(3)
    one, other = EnsembleScaling().fit(members), EnsembleScaling().fit(members[::-1])
    assert one.temperature == pytest.approx(other.temperature, rel=1e-4)
    columns = [
        Predictions(logits=member.logits[:, 1] - member.logits[:, 0], labels=member.labels % 2)
        for member in members
    ]
    fitted = EnsembleScaling().fit(columns)
    assert fitted(columns).one_column


def test_files_keep_it_and_scoring_fit_rows_raises(tmp_path):
    members = [member.with_split("calib") for member in draw(4)]
    calibrator = EnsembleScaling().fit(members)
    calibrator.save(tmp_path / "e.json")
    again = EnsembleScaling.load(tmp_path / "e.json")
    np.testing.assert_array_equal(again(members).probs, calibrator(members).probs)
    assert again(members).fitted_on.shared(members[0].rows)
    TemperatureScaling().fit(members[0]).save(tmp_path / "t.json")
    with pytest.raises(DataError, match="must contain a saved EnsembleScaling, got 'temperature'"):
        EnsembleScaling.load(tmp_path / "t.json")


def test_mistakes_have_their_remedy():
    members = draw(5, 20)
    with pytest.raises(NotFittedError, match=r"fit\(members\)"):
        EnsembleScaling()(members)
    with pytest.raises(DataError, match="at least two, got 1"):
        EnsembleScaling().fit(members[:1])
    with pytest.raises(SplitError, match="Fit on 'calib'"):
        EnsembleScaling().fit([member.with_split("test") for member in members])
    with pytest.raises(DataError, match="must have 3 classes"):
        EnsembleScaling().fit(members)([Predictions(probs=[0.5, 0.2]), Predictions(probs=[0.5, 0.2])])


@pytest.mark.simulation
def test_two_parameters_help_on_fresh_rows_where_members_differ():
    """Against temperature scaling of the average; where members hardly differ nothing is lost."""
    for noise, least in ((1.0, 0.001), (0.05, -0.001)):
        gains = []
        for seed in range(30):
            members, fresh = draw(seed, 500, noise=noise), draw(1000 + seed, 4000, noise=noise)
            scaled = TemperatureScaling().fit(average_predictions(members))(average_predictions(fresh))
            gains.append(nll(scaled) - nll(EnsembleScaling().fit(members)(fresh)))
        assert np.mean(gains) > least, (noise, np.mean(gains))
