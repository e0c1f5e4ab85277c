import numpy as np
import pytest

from equipoise.theory import (
    confidence_bias,
    dual_focal_phi,
    dual_focal_regions,
    dual_focal_under_confident_from,
    focal_phi,
    focal_regions,
)

GAMMAS = [0.5, 1.0, 2.0, 3.0, 5.0, 10.0]


def rows_with_top(rng, top, n_rows=300):
    """Random rows whose largest probability is `top`, with 2 to 40 classes."""
    for n_classes in (2, 3, 5, 10, 40):
        rest = rng.dirichlet(np.full(n_classes - 1, rng.choice([0.3, 1.0, 20.0])), n_rows) * (1 - top)
        rows = np.column_stack([np.full(n_rows, top), rest])
        yield rows[rest.max(1) < top]


def test_value_by_hand():
    # the sample-dependent focal loss picks gamma 5 below p = 0.2, where phi passes through 1
    assert focal_regions(gamma=5.0).v_prime == pytest.approx(0.2, abs=5e-3)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_marks_solve_their_equations(gamma):
    marks = focal_regions(gamma=gamma)
    grid = np.linspace(0, 1, 100001)
    assert marks.v_m == pytest.approx(grid[focal_phi(grid, gamma=gamma).argmax()], abs=1e-5)
    assert focal_phi(marks.v_prime, gamma=gamma) == pytest.approx(1, abs=1e-12)
    assert 0 < marks.v_m < 0.5


@pytest.mark.parametrize("gamma", GAMMAS)
def test_without_a_rival_dual_focal_has_the_marks_of_focal(gamma):
    assert dual_focal_regions(gamma=gamma) == focal_regions(gamma=gamma)


def test_marks_of_the_paper_by_hand():
    # With gamma 1, phi(v) = 1.3 - v - v log v: its slope is -2 - log v, it is 1.3 where log v = -1.
    marks = dual_focal_regions(gamma=1.0, rival=0.3)
    assert marks.v_m == pytest.approx(np.exp(-2))
    assert marks.v_prime == pytest.approx(np.exp(-1))
    assert 1.3 - marks.v_uc - marks.v_uc * np.log(marks.v_uc) == pytest.approx(1)
    assert marks.v_uc == pytest.approx(0.604, abs=5e-4)
    assert dual_focal_under_confident_from(gamma=1.0) == pytest.approx(0.642, abs=5e-4)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("rival", [0.05, 0.3, 0.5])
def test_dual_focal_marks_solve_their_equations(gamma, rival):
    marks = dual_focal_regions(gamma=gamma, rival=rival)
    grid = np.linspace(0, 1, 100001)
    assert marks.v_m == pytest.approx(grid[dual_focal_phi(grid, rival, gamma=gamma).argmax()], abs=1e-5)
    assert dual_focal_phi(marks.v_prime, rival, gamma=gamma) == pytest.approx((1 + rival) ** gamma)
    assert dual_focal_phi(marks.v_uc, rival, gamma=gamma) == pytest.approx(1)
    assert marks.v_m < marks.v_prime < marks.v_uc


def common_rival_bias(rows, rival, gamma):
    """Return top probability minus posterior, if all classes have the same fixed rival."""
    terms = rows / dual_focal_phi(rows, rival, gamma=gamma)
    return rows[:, 0] - terms[:, 0] / terms.sum(1)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("rival", [0.05, 0.3])
def test_with_a_common_rival_under_confidence_begins_at_v_prime_and_not_at_v_uc(gamma, rival):
    rng, marks = np.random.default_rng(0), dual_focal_regions(gamma=gamma, rival=rival)
    for top in np.linspace(marks.v_prime, 0.999, 7):
        for rows in rows_with_top(rng, top):
            assert (common_rival_bias(rows, rival, gamma) <= 1e-12).all()
    top = marks.v_prime - 1e-3
    many = np.full((1, 10**6), (1 - top) / (10**6 - 1))
    many[0, 0] = top
    assert common_rival_bias(many, rival, gamma)[0] > 0


@pytest.mark.parametrize("gamma", GAMMAS)
def test_dual_focal_is_under_confident_on_a_smaller_region(gamma):
    focal = focal_regions(gamma=gamma)
    marks = [dual_focal_regions(gamma=gamma, rival=u).v_uc for u in (0.05, 0.1, 0.2, 0.3)]
    assert focal.v_uc < marks[0]
    assert marks == sorted(marks)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_focal_regions_hold_for_every_row(gamma):
    rng, marks = np.random.default_rng(0), focal_regions(gamma=gamma)
    for top in np.linspace(marks.v_uc, 0.999, 7):
        for rows in rows_with_top(rng, top):
            assert (confidence_bias(rows, loss="focal", gamma=gamma) <= 1e-12).all()
    for top in np.linspace(0.3, 1, 4) * marks.v_m:
        n_classes = int(np.ceil(1 / top)) + 5
        rows = np.full((1, n_classes), (1 - top) / (n_classes - 1))
        rows[0, 0] = top
        assert (confidence_bias(rows, loss="focal", gamma=gamma) > 0).all()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_dual_focal_is_under_confident_above_our_bound_for_every_row(gamma):
    rng, mark = np.random.default_rng(0), dual_focal_under_confident_from(gamma=gamma)
    for top in np.linspace(mark, 0.999, 7):
        for rows in rows_with_top(rng, top):
            bias = confidence_bias(rows, loss="dual_focal", gamma=gamma, coupled=False)
            assert (bias <= 1e-12).all()


@pytest.mark.parametrize("gamma", [2.0, 3.0, 5.0, 10.0])
def test_our_bound_is_sharp_for_two_classes(gamma):
    mark = dual_focal_under_confident_from(gamma=gamma)
    row = np.array([mark - 1e-3, 1 + 1e-3 - mark])
    assert confidence_bias(row, loss="dual_focal", gamma=gamma, coupled=False) > 0


@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_gradient_through_the_rival_only_adds_over_confidence(gamma):
    rows = np.random.default_rng(0).dirichlet(np.ones(6), 200)
    held = confidence_bias(rows, loss="dual_focal", gamma=gamma, coupled=False)
    assert (confidence_bias(rows, loss="dual_focal", gamma=gamma) >= held - 1e-12).all()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_two_classes_are_always_under_confident_after_focal_training(gamma):
    top = np.linspace(0.501, 0.999, 50)
    bias = confidence_bias(np.column_stack([top, 1 - top]), loss="focal", gamma=gamma)
    assert (bias < 0).all()


def test_refusals_carry_the_remedy():
    with pytest.raises(ValueError, match=r"above 0, got 0.*cross-entropy"):
        focal_regions(gamma=0)
    with pytest.raises(ValueError, match=r"\[0, 0.5\], got 0.7.*second largest"):
        dual_focal_regions(gamma=1.0, rival=0.7)
    with pytest.raises(ValueError, match=r"dual_focal_under_confident_from: .*above 0, got -1"):
        dual_focal_under_confident_from(gamma=-1)
