"""Markdown, model cards and formulas."""

import json
import re
from itertools import groupby

import pytest

from equipoise.catalogue import CATALOGUE
from equipoise.report import model_card_metadata, to_markdown, to_model_card
from equipoise.report.formula import formula_mathml
from helpers.report_names import HOSTILE


@pytest.mark.parametrize("which", ["single", "comparison"])
def test_every_row_of_a_markdown_table_has_as_many_cells(which, request):
    lines = to_markdown(request.getfixturevalue(which)).splitlines()
    blocks = [
        list(block) for is_table, block in groupby(lines, lambda line: line.startswith("|")) if is_table
    ]
    assert blocks
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block}) == 1


def test_markdown_holds_no_live_html_or_links(comparison, single):
    for report in (comparison, single):
        text = to_markdown(report)
        assert not re.search(r"(?<!\\)<(?!\s)", text)
        assert "](javascript" not in re.sub(r"\\.", "", text)


def test_markdown_tells_the_verdict_and_marks_ties(comparison):
    text = to_markdown(comparison)
    assert text.splitlines()[0] == "# A comparison"
    assert "better calibrated than ce" in text
    assert "▲" in text
    assert "T = 2.50" in text


def test_model_card_has_the_fields_of_an_evaluation_result(single):
    card = single.methods[0].first
    content = model_card_metadata(
        card, model="m", dataset="Toys", dataset_type="toys", metrics=["ece", "nll"]
    )
    result = content["model-index"][0]["results"][0]
    assert result["task"] == {"type": "image-classification"}
    assert result["dataset"] == {"name": "Toys", "type": "toys", "split": "test"}
    ece = result["metrics"][0]
    assert ece["value"] == pytest.approx(card["ece"].value, abs=1e-6)
    assert ece["args"]["n_bins"] == 15
    assert ece["args"]["n"] == 600
    assert ece["args"]["interval"] == pytest.approx([card["ece"].low, card["ece"].high], abs=1e-6)


def parse(text):
    """Read the small part of YAML that the model card uses: nested mappings and lists of mappings."""
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines()]

    def block(place, indent):
        if lines[place][1].startswith("- "):
            items = []
            while place < len(lines) and lines[place][0] == indent and lines[place][1].startswith("- "):
                lines[place] = (indent + 2, lines[place][1][2:])
                item, place = block(place, indent + 2)
                items.append(item)
            return items, place
        found = {}
        while place < len(lines) and lines[place][0] == indent and not lines[place][1].startswith("- "):
            key, _, rest = lines[place][1].partition(":")
            place += 1
            if rest.strip():
                found[key] = json.loads(rest)
            else:
                found[key], place = block(place, lines[place][0])
        return found, place

    return block(0, 0)[0]


@pytest.mark.parametrize("name", ["plain", *HOSTILE[:5], 'colon: quote" # hash'])
def test_model_card_yaml_reads_back(single, name):
    card = single.methods[0].first
    text = to_model_card(card, model=name, dataset=name)
    assert parse(text) == model_card_metadata(card, model=name, dataset=name)


def formulas():
    for entries in CATALOGUE.values():
        yield from (entry.formula for entry in entries.values() if entry.formula)


def test_every_formula_of_the_catalogue_is_drawn():
    plain = [formula for formula in formulas() if not (formula_mathml(formula) or "").startswith("<math")]
    assert plain == []
    assert len(list(formulas())) > 20


def test_formulas_by_hand():
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in formula_mathml(r"\tfrac12")
    assert "<munder><mo>∑</mo><mrow><mi>j</mi><mo>≠</mo><mi>y</mi></mrow></munder>" in formula_mathml(
        r"\sum_{j \ne y} p"
    )


def test_without_the_package_formulas_stay_latex(monkeypatch):
    monkeypatch.setattr("equipoise.report.formula.find_spec", lambda name: None)
    assert formula_mathml("p^2") is None


@pytest.mark.parametrize(
    "latex",
    [
        "}",
        "{",
        "x^",
        r"\frac{1}",
        r"\href{x}{<b>}",
        "{" * 5000,
        "_",
        "<script>",
        r"\href{javascript:x}{y}",
        r"\text{<script>}",
    ],
)
def test_what_is_no_formula_stays_text(latex):
    drawn = formula_mathml(latex)
    assert drawn is None or not re.search("<(script|b|a)[ >]|href", drawn)
