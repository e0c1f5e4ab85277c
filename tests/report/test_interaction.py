"""The controls of the page in a real browser: what a reader changes is what the rows say."""

import json
import re

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from equipoise import Predictions
from equipoise.decisions import certify_threshold
from equipoise.decisions.certificate import threshold_text
from equipoise.metrics import expected_calibration_error
from equipoise.metrics.corp import corp_split
from equipoise.report import report_of, to_html, write_report
from helpers.browser import look, open_browser, overflow
from helpers.report_names import HOSTILE


def rows(n, seed, split, sharpness=2.0):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(n, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    groups = {"site": rng.choice(["north", "south"], n)}
    return Predictions(
        logits=sharpness * logits, labels=labels, split=split, class_names=HOSTILE[:3], groups=groups
    )


@pytest.fixture(scope="module")
def tested():
    return rows(3000, 0, "test")


@pytest.fixture(scope="module")
def report(tested):
    calib = rows(2000, 1, "calib")
    return report_of(tested, by=["site"], calib=calib, candidates=["temperature"], n_resamples=20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, report, tmp_path):
    look(browser, write_report(report, tmp_path / "report.html").as_uri())
    return browser


def text(browser, name):
    return browser.find_element(By.ID, name).text.replace("\u00a0", " ")


def ece_shown(browser):
    return float(re.search(r"ECE ([\d.]+) ?%", text(browser, "explore-result"))[1]) / 100


def press(browser, name, key, times=1):
    control = browser.find_element(By.ID, name)
    browser.execute_script("arguments[0].focus()", control)
    for _ in range(times):
        control.send_keys(key)


def test_the_page_begins_with_the_scores_of_the_report(page, report):
    assert ece_shown(page) == pytest.approx(report.methods[0].score("ece").value, abs=6e-5)
    assert page.get_log("browser") == []


def test_bins_are_chosen_with_the_keyboard_and_give_the_ece_of_that_many_bins(page, tested):
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_LEFT):
        press(page, "explore-bins", key)
        bins = int(page.find_element(By.ID, "explore-bins-value").text)
        assert ece_shown(page) == pytest.approx(expected_calibration_error(tested, n_bins=bins), abs=6e-5)
        bars = page.find_elements(By.CSS_SELECTOR, "#explore-chart .mark")
        curve_bins = np.unique(np.ceil(tested.confidence * bins))
        assert len(bars) == len(curve_bins)
    assert bins == 12


@pytest.mark.parametrize("group", [True, False], ids=["group", "class"])
def test_a_class_or_group_shows_its_own_rows(page, tested, group):
    select = Select(page.find_element(By.ID, "explore-slice"))
    name = "south" if group else HOSTILE[1]
    option = next(one for one in select.options if one.get_attribute("textContent") == name)
    select.select_by_value(option.get_attribute("value"))
    mask = tested.groups["site"] == "south" if group else tested.predicted == 1
    part = tested.take(np.flatnonzero(mask))
    assert text(page, "explore-result").startswith(f"{len(part):,} rows: mean confidence")
    assert ece_shown(page) == pytest.approx(expected_calibration_error(part), abs=6e-5)


def test_the_toggle_shows_the_predictions_after_calibration_in_both_panels(page, report):
    before = text(page, "act-result")
    page.find_elements(By.CSS_SELECTOR, "#explore .choose input[type=radio]")[1].click()
    [after] = report.methods[0].calibrated
    assert ece_shown(page) == pytest.approx(after.score("ece").value, abs=6e-5)
    assert text(page, "act-result") != before
    assert page.find_elements(By.CSS_SELECTOR, "#act .choose input[type=radio]")[1].is_selected()


def test_an_isotonic_fit_replaces_the_bars_and_splits_the_score(page, tested):
    page.find_element(By.ID, "explore-corp").click()
    path = page.find_element(By.CSS_SELECTOR, "#explore-chart path.corp").get_attribute("d")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path)]
    assert heights == sorted(heights, reverse=True)  # frequencies never decrease
    assert page.find_elements(By.CSS_SELECTOR, "#explore-chart .came") == []
    parts = [
        float(part) for part in re.findall(r"0\.\d+", text(page, "explore-result").partition("Brier")[2])
    ]
    assert parts == pytest.approx(corp_split(tested), abs=6e-5)


def test_thresholds_show_coverage_and_error_and_mark_those_that_are_certified(page, tested):
    rule = certify_threshold(tested, max_error=0.1).certificate
    assert rule.certified
    button = next(
        one for one in page.find_elements(By.CSS_SELECTOR, "#act-certified button") if "10" in one.text
    )
    button.send_keys(Keys.ENTER)
    words = text(page, "act-result")
    shown = threshold_text(rule.threshold)
    assert f"Threshold {shown}: accepts {100 * rule.coverage:.1f}% of the rows" in words
    assert f"{100 * rule.observed_error:.2f}% of them are wrong" in words
    assert "Certified: with 95% confidence, at most 10% of accepted predictions are wrong" in words
    press(page, "act-threshold", Keys.ARROW_RIGHT)
    moved = text(page, "act-result")
    assert "Not certified" in moved
    threshold, accepted, error = (
        float(one) for one in re.search(r"(\d\.\d+): accepts ([\d.]+) ?%.*; ([\d.]+) ?%", moved).groups()
    )
    highest, lowest = (100 * (tested.confidence >= threshold + by).mean() for by in (-5e-4, 5e-4))
    assert lowest - 0.05 <= accepted <= highest + 0.05  # the threshold is rounded to three decimals
    assert accepted < 100 * rule.coverage
    kept = np.argsort(-tested.confidence)[: round(accepted / 100 * len(tested))]
    assert error == pytest.approx(100 * (~tested.correct[kept]).mean(), abs=0.2)


def test_a_filter_hides_other_rows(page):
    table = page.find_element(By.CSS_SELECTOR, "#numbers table")
    field = page.find_element(By.CSS_SELECTOR, "#numbers .filter input")
    field.send_keys("brier")
    shown = [row.text for row in table.find_elements(By.CSS_SELECTOR, "tbody tr") if row.is_displayed()]
    assert shown
    assert all("brier" in row.lower() for row in shown)
    field.clear()
    field.send_keys(Keys.SPACE)
    assert all(row.is_displayed() for row in table.find_elements(By.CSS_SELECTOR, "tbody tr"))


def test_the_controls_fit_a_phone(browser, report, tmp_path):
    look(browser, write_report(report, tmp_path / "report.html").as_uri(), width=360, height=760)
    assert overflow(browser, 360) <= 0
    for name in ("explore-bins", "explore-slice", "act-threshold"):
        box = browser.find_element(By.ID, name).rect
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    look(browser, "about:blank", width=1280, height=900)


def test_without_scripts_the_page_has_diagrams_and_tables_and_no_dead_controls(browser, report, tmp_path):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(write_report(report, tmp_path / "report.html").as_uri())
        assert not browser.find_element(By.ID, "explore").is_displayed()
        assert not browser.find_element(By.ID, "act").is_displayed()
        assert browser.find_element(By.CSS_SELECTOR, "figure svg.reliability").is_displayed()
        assert "certified" in browser.find_element(By.ID, "selective").text
        assert browser.find_elements(By.CSS_SELECTOR, ".filter") == []
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_several_methods_can_be_chosen_between(browser, tested, tmp_path):
    soft = tested.with_scores(logits=tested.logits / 2)
    both = report_of({"sharp": tested, "soft": soft}, n_resamples=20)
    look(browser, write_report(both, tmp_path / "both.html").as_uri())
    Select(browser.find_element(By.CSS_SELECTOR, "#act select")).select_by_visible_text("soft")
    assert ece_shown(browser) == pytest.approx(expected_calibration_error(soft), abs=6e-5)
    assert browser.execute_script("return document.activeElement.dataset.control") == "method"


def test_a_page_of_ten_methods_is_below_a_megabyte(tested):
    calib = rows(500, 1, "calib")
    named = {
        f"method {number}": tested.with_scores(logits=tested.logits / (1 + number / 5))
        for number in range(10)
    }
    report = report_of(
        named, by=["site"], calib=dict.fromkeys(named, calib), candidates=["temperature"], n_resamples=5
    )
    assert len(to_html(report).encode()) < 1_000_000


def test_names_in_the_data_cannot_end_the_script(report):
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', to_html(report), re.DOTALL
    )[1]
    assert "<" not in found
    assert json.loads(found)["methods"][0]["variants"][0]["slices"][0]["name"] == ""
