"""The page: whole, escaped, self-contained, and holding the numbers of its records."""

import re
import xml.etree.ElementTree as ElementTree
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from equipoise import Predictions
from equipoise.evaluate import audit
from equipoise.report import report_of, to_html, to_markdown, write_report
from helpers.report_names import HOSTILE

TAGS = """
html head meta title link style body header main section nav ul li a h1 h2 h3 p dl dt dd div table caption
thead tbody tr th td button span b bdi i figure figcaption details summary svg g rect line path circle polygon text
article code pre footer script label input select output math
mrow mi mn mo msub msup msubsup mfrac mover munder munderover mspace mstyle
mtext wbr
"""
ALLOWED = set(TAGS.split())


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.open = []

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes += attributes
        if name not in ("meta", "link", "input", "wbr"):
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.tags.append(name)
        self.attributes += attributes

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, text):
        self.text.append(text)


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.mark.parametrize("which", ["single", "comparison"])
def test_only_our_own_tags_and_one_script(which, request):
    reader = read(to_html(request.getfixturevalue(which)))
    assert set(reader.tags) <= ALLOWED
    assert reader.tags.count("script") == 2  # the data, and the script
    assert not [name for name, _ in reader.attributes if name.startswith("on")]


@pytest.mark.parametrize("which", ["single", "comparison"])
def test_nothing_points_outside(which, request):
    reader = read(to_html(request.getfixturevalue(which)))
    links = [value for name, value in reader.attributes if name in ("href", "src", "xlink:href", "action")]
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", to_html(request.getfixturevalue(which)))


def test_hostile_names_are_there_as_text(single):
    text = "".join(read(to_html(single)).text)
    for name in HOSTILE[:5]:
        assert name in text
    assert "\x00" not in text
    assert "\u202e" not in text


def test_anchors_lead_somewhere(comparison):
    reader = read(to_html(comparison))
    ids = {value for name, value in reader.attributes if name == "id"}
    anchors = {value[1:] for name, value in reader.attributes if name == "href" and value.startswith("#")}
    assert anchors
    assert anchors <= ids
    labels = {value for name, value in reader.attributes if name == "aria-labelledby"}
    assert labels <= ids


def test_a_comparison_has_every_section_and_one_model_its_own(single, comparison):
    def sections(report):
        return set(
            re.findall(r'<section [^>]*id="(\w+)"', to_html(report).replace("<section id", "<section  id"))
        )

    assert sections(comparison) == {
        "verdict", "numbers", "reliability", "advice", "tradeoff", "posthoc", "slices", "selective", "training",
        "methods", "provenance",
    }  # fmt: skip
    assert sections(single) == {
        "verdict", "numbers", "reliability", "advice", "slices", "selective", "provenance",
    }  # fmt: skip


def test_bars_of_the_figure_are_the_record(single):
    curve = single.methods[0].curve()
    page = to_html(single)
    figure = re.search(
        r'<svg [^>]*class="reliability" tabindex="0" data-steps="">.*?</svg>', page, re.DOTALL
    ).group()
    tree = ElementTree.fromstring(figure)
    heights = [float(part.get("height")) for part in tree.iter("rect") if part.get("class") == "came"]
    wanted = [266 * value for value in curve.frequency[curve.weight > 0]]
    assert heights == pytest.approx(wanted, abs=0.02)
    tips = [part.get("data-tip") for part in tree.iter("g")]
    counts = [int(re.search(r"([\d,]+) rows", tip).group(1).replace(",", "")) for tip in tips]
    assert counts == curve.weight[curve.weight > 0].tolist()


def test_the_table_holds_the_scores(comparison):
    page = to_html(comparison)
    for method in comparison.methods:
        for key in ("accuracy", "ece", "nll"):
            assert f'data-sort="{method.score(key).value}"' in page


def test_written_whole_by_its_ending(single, tmp_path):
    page, notes = (write_report(single, tmp_path / name) for name in ("r.html", "r.md"))
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert notes.read_text(encoding="utf-8").startswith("# ")
    with pytest.raises(ValueError, match=r"\.html or \.md"):
        write_report(single, tmp_path / "r.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.md"]


def test_a_page_of_six_hundred_rows_is_small(single):
    assert len(to_html(single)) < 160_000


def test_reliability_is_drawn_before_and_after_calibrators(comparison):
    page = to_html(comparison)
    assert (
        page.count('class="reliability"') == len(comparison.methods) + 2
    )  # a calibrator, and the one to explore
    assert "ce after temperature" in page


def test_points_are_told_apart_without_color(rows):
    page = to_html(report_of({f"m{i}": rows for i in range(9)}, n_resamples=5))
    page = re.search(r'<section id="tradeoff".*?</section>', page, re.DOTALL).group()
    marks = re.findall(r'<(circle|polygon)[^>]*class="dot s(\d)"', page)
    assert len(marks) == 18  # once in the figure, once in the key
    shapes = re.findall(r'points="([^"]+)"', page)
    relative = {
        tuple(
            round(float(number) - float(shape.split()[0].split(",")[0]), 1)
            for number in re.findall(r"([-.\d]+),", shape)
        )
        for shape in shapes
    }
    assert len(relative) >= 6


@pytest.mark.parametrize(("key", "label"), [("ece", "ECE (%)"), ("nll", "negative log-likelihood")])
def test_a_scatter_has_the_unit_of_its_metric(rows, key, label):
    from equipoise.report.charts import scatter_chart

    methods = report_of({"a": rows, "b": rows.with_scores(logits=rows.logits / 2)}, n_resamples=5).methods
    texts = [part.text for part in scatter_chart(methods, key=key).shapes if part.tag == "text"]
    assert label in texts
    ticks = [float(text) for text in texts if re.fullmatch(r"\d+(?:\.\d+)?", text)]
    assert ticks
    assert max(ticks) <= 100  # percents, or nats of about one


def test_many_slices_say_how_many_are_shown():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 40, 4000)
    rows = Predictions(predicted=labels, confidence=np.full(4000, 0.6), labels=labels)
    page = to_html(report_of(rows, n_resamples=5))
    assert "40 of 40 are off by more than chance explains" in page
    assert "; the 10 worst shown" in page


@pytest.mark.parametrize(("level", "n_off"), [(0.95, 1), (0.999, 0)])
def test_page_markdown_and_audit_find_the_same_slices_off(level, n_off):
    # One site is calibrated; the other claims 90% and is right in 39 of 50 rows, which chance explains in a few
    # of a hundred samples.
    right = [True] * 45 + [False] * 5 + [True] * 39 + [False] * 11
    rows = Predictions(
        predicted=np.zeros(100, int),
        labels=np.where(right, 0, 1),
        confidence=np.full(100, 0.9),
        groups={"site": ["north"] * 50 + ["south"] * 50},
    )
    found = audit(rows, level=level, n_resamples=20)
    assert all(0.001 < part.p_value < 0.05 for part in found.groups["site"] if part.name == "south")
    report = report_of(found)
    page = to_html(report).replace("\u00a0", " ")
    assert len(found.worst(found.groups["site"])) == n_off
    said = "1 of 2 are off" if n_off else "none is off"
    rule = f"at level {100 * level:g}%, corrected for all 2 by Holm's rule"
    assert f"{said} by more than chance explains ({rule})" in unescape(page)
    assert page.count('class="sign worse"') == n_off
    assert ("site south" in to_markdown(report)) == bool(n_off)
    assert f"Groups by site: {said}" in str(found)


def test_a_report_of_an_audit_or_a_stream_is_that_of_the_rows(rows):
    settings = {"n_resamples": 20}
    whole = report_of(rows, by=["site"], **settings)
    audited = report_of(audit(rows, **settings), rows={"model": rows})
    assert to_html(audited).replace("600 rows,", "600 rows of logits,") == to_html(whole)
    stream = report_of(rows.blocks(100), by=["site"], **settings)
    assert stream.methods[0].score("ece").value == pytest.approx(whole.methods[0].score("ece").value)
    for found, wanted in zip(stream.methods[0].classes, whole.methods[0].classes, strict=True):
        assert found.name == wanted.name
        assert found[1:] == pytest.approx(wanted[1:], rel=1e-9)


def test_what_is_not_known_has_its_own_reason():
    found = audit(Predictions(probs=[[0.9, 0.1]] * 30, labels=[0] * 30), n_resamples=20)
    page = to_html(report_of(found))
    for words in (
        "top-5 accuracy (five classes or fewer)",
        "AUROC of right vs wrong (all predictions are right, or all are wrong)",
    ):
        assert f"Not known: {words}." in page
        assert f"Not known: {words}." in " ".join(str(found).split())


def test_a_decision_that_was_checked_is_shown(rows):
    from dataclasses import replace

    from equipoise.decisions import DecisionCheck

    checked = DecisionCheck(
        False, "The promise is broken in <b>one</b>\x1b group.\nsecond line", {}, ("A note.",)
    )
    report = replace(report_of({"model": rows}, n_resamples=5), decision=checked)
    page, text = to_html(report), to_markdown(report)
    assert "The promise is broken in &lt;b&gt;one&lt;/b&gt;" in page
    assert "\x1b" not in page + text
    for words in ("second line", "A note."):
        assert words in page
        assert words in text
    assert "**FAIL** The promise is broken" in text


def test_empty_sets_are_explained():
    rng = np.random.default_rng(0)
    logits = 12 * rng.normal(size=(2000, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    some = Predictions(logits=logits, labels=labels, ids=np.arange(2000))
    halves = some.take(slice(0, 1000)), some.take(slice(1000, 2000))
    page = to_html(
        report_of({"model": halves[0]}, calib=halves[1], candidates=["temperature"], n_resamples=5)
    )
    assert "Some sets are empty, since the most probable class alone is right more often." in page
