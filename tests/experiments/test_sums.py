"""Free sums, parameters of every part, recipes as lists and of a method's own."""

import inspect

import pytest

from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import SpecError
from equipoise.experiments import ComparisonSpec, Spec, run_comparison
from equipoise.experiments.build.data import data_of
from equipoise.experiments.build.run_parts import build, make_loss
from helpers.tiny_runs import TABLE


def loss_of(method):
    spec = Spec.from_table({**TABLE, "method": method})
    return make_loss(spec, data_of(spec))


def test_parts_have_strengths_and_parameters_of_their_own():
    total = loss_of(
        {
            "name": "dual_focal+0.5*mdca+2*mmce",
            "options": {"dual_focal": {"gamma": 1.5}, "mmce": {"width": 0.2}},
        }
    )
    focal, mdca, mmce = total.terms
    assert focal.gamma == 1.5
    assert (mdca.factor, mmce.factor, mmce.term.width) == (0.5, 2.0, 0.2)


def test_parts_get_what_the_data_tell():
    assert loss_of("cals_alm+0.1*mdca").terms[0].multipliers.shape == (10,)


def test_a_pair_of_the_catalogue_stays_what_it_is():
    assert loss_of("ce+mmce").terms[1].factor == 0.1
    assert loss_of("ce+0.3*mmce").terms[1].factor == 0.3


def test_parts_of_a_ready_pair_may_have_tables_as_well():
    flat = loss_of({"name": "focal+mdca", "options": {"gamma": 1.5, "strength": 0.5}})
    nested = loss_of({"name": "focal+mdca", "options": {"focal": {"gamma": 1.5}, "mdca": {"strength": 0.5}}})
    assert repr(nested) == repr(flat)
    assert nested.terms[0].gamma == 1.5


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (
            {"name": "focal+mdca", "options": {"gamma": 1.0, "focal": {"gamma": 2.0}}},
            "'gamma' is given twice",
        ),
        ({"name": "focal+0.5*dual_focal", "options": {"gamma": 1.0}}, "focal and dual_focal take 'gamma'"),
        ("focal+mdcaa", "no loss or penalty 'mdcaa'; did you mean 'mdca'"),
        ("mdca+mmce", "penalties only"),
        ("focal+focal", "names a term twice"),
        ("focal+x*mdca", "'x' is not a number"),
        ("focal+nan*mdca", "'nan' is not a number"),
        ("focal+", "is not a term of a sum"),
        ({"name": "focal+mmce", "options": {"widht": 0.2}}, "no option 'widht'; did you mean 'width'"),
        (
            {"name": "focal+mmce", "options": {"mmce": {"wdth": 0.2}}},
            "'mmce' has no option 'wdth'; did you mean 'width'",
        ),
    ],
)
def test_mistakes_in_sums(method, sentence):
    with pytest.raises(SpecError, match=rf"spec\.method\.\w+: .*{sentence}"):
        Spec.from_table({**TABLE, "method": method})


def test_keys_that_toml_can_only_write_as_text_become_numbers():
    loss = loss_of({"name": "focal", "options": {"schedule": {"100": 3.0, "250": 1.0}}})
    assert dict(loss.schedule) == {100: 3.0, 250: 1.0}


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("gamma_net", {"inner": "all", "inner_reduction": "sum", "bandwidth": 0.05}),
        ("differentiated_mutual_learning", {"augment": "noise"}),
        ("ce+kde", {"power": 2}),
        ("ce+sece", {"include_self": False}),
        ("cals_alm", {"start": 0.5, "rho_start": 2.0}),
    ],
)
def test_options_of_factories_can_be_reached(method, options):
    assert build(Spec.from_table({**TABLE, "method": {"name": method, "options": options}}))


def test_two_different_networks_may_learn_from_each_other():
    method = {"name": "mutual_learning", "auxiliary": {"name": "mlp", "options": {"hidden": [3]}}}
    sizes = {
        tuple(p.shape) for p in build(Spec.from_table({**TABLE, "method": method})).objective.parameters()
    }
    assert {(16, 64), (3, 64)} <= sizes


def test_recipes_may_be_a_list(tmp_path, quick):
    recipes = [{"name": "quick", "epochs": 1, "weight_decay": decay} for decay in (1e-4, 5e-4, 1e-3)]
    comparison = ComparisonSpec.from_table({**TABLE, "recipe": recipes})
    result = run_comparison(comparison, tmp_path, **quick, workers=1)
    assert [table.data for table in result.tables] == [
        f"digits (weight_decay={w})" for w in (1e-4, 5e-4, 1e-3)
    ]


def test_a_method_may_bring_its_own_recipe_and_stands_in_the_same_table(tmp_path, quick):
    table = {**TABLE, "method": ["ce", {"name": "brier", "recipe": {"lr": 0.035, "epochs": 1}}]}
    comparison = ComparisonSpec.from_table(table)
    assert comparison.specs[1].training.lr == 0.035
    assert comparison.specs[1].training.batch_size == comparison.specs[0].training.batch_size
    result = run_comparison(comparison, tmp_path, **quick, workers=1)
    [found] = result.tables
    assert [row.method for row in found.rows[:2]] == ["ce", "brier(lr=0.035, epochs=1)"]
    assert [len(folder.history()) for folder in result.summary.done] == [2, 1]


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ({"lrr": 1}, "method.recipe: no key 'lrr'; did you mean 'lr'"),
        ({"lr": -1.0}, "method.recipe.lr: must be above 0"),
    ],
)
def test_mistakes_in_a_methods_recipe(recipe, sentence):
    with pytest.raises(SpecError, match=sentence):
        Spec.from_table({**TABLE, "method": {"name": "brier", "recipe": recipe}})


def test_a_title_is_no_part_of_the_identity():
    plain, named = (
        Spec.from_table({**TABLE, "method": m}) for m in ("focal", {"name": "focal", "title": "mine"})
    )
    assert (plain.identity, named.label[:4]) == (named.identity, "mine")


def test_every_parameter_of_every_method_is_taken_by_a_spec():
    ours = {"parts", "n_classes", "weight", "ignore_index", "reduction", "gather", "parameters"}
    for category in ("losses", "objectives"):
        for key, entry in CATALOGUE[category].items():
            names = set(inspect.signature(entry.factory).parameters) - ours
            values = {name: entry.options.get(name, 1) for name in names}
            assert Spec.from_table({**TABLE, "method": {"name": key, "options": values}})


def test_calibrators_take_options(tmp_path, quick):
    strong = {"name": "dirichlet", "options": {"off_diagonal": 10.0}}
    comparison = ComparisonSpec.from_table({**TABLE, "calibrators": ["dirichlet", strong]})
    result = run_comparison(comparison, tmp_path, **quick, workers=2)
    [folder] = result.summary.done
    assert folder.calibrators() == ["identity", "dirichlet", "dirichlet(off_diagonal=10.0)"]
    assert folder.calibrator("dirichlet(off_diagonal=10.0)").off_diagonal == 10.0
    assert [row.calibrator for row in result.tables[0].rows] == folder.calibrators()
    assert folder.status() == "finished"


@pytest.mark.parametrize(
    ("calibrator", "sentence"),
    [
        (
            {"name": "dirichlet", "options": {"of_diagonal": 1}},
            "did you mean 'off_diagonal'",
        ),
        ({"name": "dirichlt"}, "did you mean 'dirichlet'"),
        ({"name": "histogram", "options": {"n_bins": 0}}, "n_bins"),
        (3, "expected a name or a table"),
    ],
)
def test_mistakes_in_calibrators(calibrator, sentence):
    with pytest.raises(SpecError, match=rf"comparison\.calibrators: .*{sentence}"):
        ComparisonSpec.from_table({**TABLE, "calibrators": [calibrator]})


def test_data_without_rows_for_a_calibrator_are_named_before_the_first_run(tmp_path, quick):
    table = {**TABLE, "data": {"name": "digits", "options": {"calib": 0.0}}, "calibrators": ["temperature"]}
    with pytest.raises(SpecError, match=r"comparison\.calibrators: 'digits' has no 'calib' split"):
        run_comparison(ComparisonSpec.from_table(table), tmp_path, **quick)
    assert list(tmp_path.iterdir()) == []
