"""Specs: checked at the door, written and read as TOML, known by their content."""

import dataclasses
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.catalogue import CATALOGUE
from equipoise.core.errors import SpecError
from equipoise.experiments import Spec, read_spec, write_spec
from equipoise.experiments.specs.run import RecipeSpec, read_stored_spec
from equipoise.experiments.specs.toml import format_toml, parse_override, read_toml


def changed(table, path, value):
    inner = table
    *parents, last = path.split(".")
    for parent in parents:
        inner = inner.setdefault(parent, {})
    inner[last] = value
    return table


def test_round_trip_through_toml(spec, tmp_path):
    write_spec(spec, tmp_path / "run.toml")
    again = read_spec(tmp_path / "run.toml")
    assert again.identity == spec.identity
    assert again.to_table() == spec.to_table()


@given(
    st.dictionaries(
        st.text(
            st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs", "Cc"]),
            min_size=1,
        ),
        st.one_of(st.integers(-(2**62), 2**62), st.booleans(), st.text(), st.lists(st.integers(0, 9))),
    )
)
def test_toml_writer_is_undone_by_the_standard_reader(table):
    import tomllib

    assert tomllib.loads(format_toml(table)) == table


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("modle", "mlp", "no key 'modle'; did you mean 'model'"),
        ("data.name", "digts", "spec.data.name: no dataset 'digts'; did you mean 'digits'"),
        ("model.name", "mpl", "spec.model.name: no model 'mpl'; did you mean 'mlp'"),
        ("model.options", {"hiden": [4]}, "'mlp' has no option 'hiden'; did you mean 'hidden'"),
        ("model", "resnet8x", "no model 'resnet8x'"),
        (
            "model",
            "global_pooling_cnn",
            "spec.model.name: model 'global_pooling_cnn' takes text, but 'digits' holds image",
        ),
        ("method", "focall", "spec.method.name: no method 'focall'; did you mean 'focal'"),
        (
            "method",
            {"name": "focal", "options": {"gama": 1}},
            "no option 'gama'; did you mean 'gamma'",
        ),
        ("method", "mmce", "a penalty, which needs a loss; use 'ce+mmce'"),
        ("method", {"name": "focal", "loss": "ce"}, "go with objectives"),
        ("recipe.name", "quik", "spec.recipe.name: no recipe 'quik'; did you mean 'quick'"),
        ("recipe.epochs", 0, "spec.recipe.epochs: must be at least 1, got 0"),
        ("recipe.epochs", "many", "spec.recipe.epochs: must be int, got str 'many'"),
        ("recipe.epochs", True, "spec.recipe.epochs: must be int, got bool"),
        ("recipe.optimizer", "sdg", "Did you mean 'SGD'"),
        ("recipe.schedule", "multistep", "spec.recipe.milestones: a multistep schedule needs some"),
        ("recipe.momentum", -0.1, "spec.recipe.momentum: must be at least 0, got -0.1"),
        ("recipe.patience", -1, "spec.recipe.patience: must be at least 0"),
        (
            "method",
            {"name": "pruned", "loss": {"name": "focal", "options": {"gama": 1.0}}},
            "spec.method.loss.options: 'focal' has no option 'gama'; did you mean 'gamma'",
        ),
        ("seed", 1.5, "spec.seed: must be int"),
        ("data.options", {"paht": "x"}, "'digits' has no option 'paht'"),
    ],
)
def test_mistakes_name_key_and_remedy(table, path, value, sentence):
    with pytest.raises(SpecError) as found:
        Spec.from_table(changed(table, path, value))
    assert sentence in str(found.value)


def test_missing_key_is_named():
    with pytest.raises(SpecError, match="the key 'model' is missing"):
        Spec.from_table({"data": "digits"})


def test_identity_depends_on_content_alone(table, spec):
    named = spec.identity
    written_out = spec.to_table()
    assert "name" not in written_out["recipe"]
    assert Spec.from_table(written_out).identity == named
    assert Spec.from_table(changed(table, "seed", 1)).identity != named


@pytest.mark.parametrize("path", ["recipe.lr", "recipe.epochs", "recipe.mixup", "recipe.batch_size"])
def test_every_change_is_another_run(table, spec, path):
    assert Spec.from_table(changed(table, path, 1)).identity != spec.identity


def test_overrides(spec, tmp_path):
    write_spec(spec, tmp_path / "run.toml")
    again = read_spec(tmp_path / "run.toml", overrides=["recipe.epochs=7", "method=focal"])
    assert again.recipe.epochs == 7
    assert again.method.name == "focal"
    with pytest.raises(SpecError, match="must be key=value"):
        parse_override("epochs")


@pytest.mark.parametrize("key", sorted(CATALOGUE["recipes"]))
def test_every_recipe_makes_a_spec(key):
    spec = Spec.from_table({"data": "digits", "model": "mlp", "recipe": key})
    assert spec.recipe.name == key
    assert dataclasses.replace(spec.recipe, name="") is not None


@pytest.mark.parametrize("key", sorted({**CATALOGUE["losses"], **CATALOGUE["objectives"]}))
def test_every_method_makes_a_spec(key):
    assert Spec.from_table({"data": "digits", "model": "mlp", "method": key}).method.name == key


IDENTITIES = {
    "cc9896dc276ca311": {"data": "digits", "model": "mlp"},
    "be732eb0c8d5ff7a": {
        "data": "digits",
        "model": "mlp",
        "method": "focal",
        "recipe": "focal_cifar",
        "seed": 3,
    },
}


@pytest.mark.parametrize(("identity", "table"), IDENTITIES.items())
def test_identities_stay_what_they_were(identity, table):
    """Finished runs are found by them; a change here orphans every run of every user."""
    assert Spec.from_table(table).identity == identity


def test_a_field_with_an_empty_default_leaves_runs_their_names(spec):
    table = spec.to_table()
    assert RecipeSpec().optimizer_options == {}
    assert "optimizer_options" not in table["recipe"]
    filled = {**table, "recipe": {**table["recipe"], "optimizer_options": {}}}
    assert Spec.from_table(filled).identity == spec.identity


def test_a_stored_spec_without_a_newer_field_is_still_its_run(spec, tmp_path):
    write_spec(spec, tmp_path / "spec.toml")
    text = (tmp_path / "spec.toml").read_text()
    (tmp_path / "spec.toml").write_text(text.replace('precision = "32-true"\n', ""))
    assert "precision" not in (tmp_path / "spec.toml").read_text()
    assert read_stored_spec(tmp_path / "spec.toml").identity == spec.identity


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 50_000, "a." * 50_000 + "a = 1", "[" + "a." * 50_000 + "a]", "a = " + "9" * 5000, "\0"],
)
def test_hostile_specs_are_answered_at_once(tmp_path, text):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(SpecError, match=r"run\.toml"):
        read_spec(tmp_path / "run.toml")


def test_a_date_is_no_setting(table):
    with pytest.raises(SpecError, match=r"data\.options\.since: must be a number, a text"):
        Spec.from_table(changed(table, "data.options.since", datetime.date(2026, 1, 1)))


def test_a_page_is_not_called_a_deep_table(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("<!doctype html>" + "<p>Ends. Starts. </p>" * 60)
    with pytest.raises(SpecError, match=r"report\.html: not a spec: .* Is it another file\?"):
        read_toml(page)
