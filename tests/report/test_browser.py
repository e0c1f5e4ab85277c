"""The page in a real browser: Debian's chromium and chromium-driver, without a window."""

import base64
import json
import re
from itertools import pairwise

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from equipoise.report import write_report
from helpers.browser import look, open_browser, overflow


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, single, comparison):
    folder = tmp_path_factory.mktemp("pages")
    written = {"single": single, "comparison": comparison}
    return {name: write_report(report, folder / f"{name}.html").as_uri() for name, report in written.items()}


def until(browser, condition):
    """Wait for what the page does in its own time; the limit is for a machine that is busy with other things."""
    WebDriverWait(browser, 20, poll_frequency=0.05).until(lambda _: condition())


@pytest.mark.parametrize("name", ["single", "comparison"])
def test_opens_without_a_word_on_the_console_or_a_request(browser, pages, name):
    browser.get_log("performance")
    look(browser, pages[name])
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert pages[name] in asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("name", ["single", "comparison"])
def test_hostile_names_stay_text(browser, pages, name):
    look(browser, pages[name])
    assert browser.execute_script("return window.hacked") is None
    assert browser.execute_script("return document.querySelectorAll('img, iframe, object').length") == 0
    assert browser.execute_script("return document.scripts.length") == 2  # the data, and the script
    assert "<script>window.hacked = 1</script>" in browser.find_element(By.ID, "slices").get_attribute(
        "textContent"
    )


def test_the_policy_lets_no_other_script_run(browser, pages):
    look(browser, pages["single"])
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 2'; document.body.append(s)"
    )
    assert browser.execute_script("return window.hacked") is None
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))


def test_headings_sort_by_number_and_say_so(browser, pages):
    look(browser, pages["comparison"])
    table = browser.find_element(By.CSS_SELECTOR, "#numbers table")
    head = table.find_elements(By.CSS_SELECTOR, "thead th")
    column = next(i for i, cell in enumerate(head) if cell.text.startswith("ECE"))

    def values():
        return [
            float(row.find_elements(By.TAG_NAME, "td")[column - 1].get_attribute("data-sort"))
            for row in table.find_elements(By.CSS_SELECTOR, "tbody tr")
        ]

    before = values()
    head[column].find_element(By.TAG_NAME, "button").click()
    assert values() == sorted(before)
    assert head[column].get_attribute("aria-sort") == "ascending"
    head[column].find_element(By.TAG_NAME, "button").click()
    assert values() == sorted(before, reverse=True)
    assert head[column].get_attribute("aria-sort") == "descending"
    head[0].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    names = [cell.text for cell in table.find_elements(By.CSS_SELECTOR, "tbody th bdi")]
    assert names == sorted(names, key=str.lower)


def test_hovering_a_bin_tells_its_rows_and_interval(browser, pages, single):
    look(browser, pages["single"])
    tip = browser.find_element(By.ID, "tip")
    assert not tip.is_displayed()
    mark = browser.find_elements(By.CSS_SELECTOR, "figure svg.reliability .mark")[-1]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", mark)
    ActionChains(browser).move_to_element(mark).perform()
    until(browser, tip.is_displayed)
    curve = single.methods[0].curve()
    assert f"{curve.weight[-1]:,.0f} rows" in tip.text
    low, high = (100 * end[-1] for end in curve.intervals())
    assert f"[{low:.1f}%, {high:.1f}%]" in tip.text
    box = tip.rect
    assert box["x"] >= 0
    ActionChains(browser).move_to_element(browser.find_element(By.CSS_SELECTOR, "#reliability h2")).perform()
    until(browser, lambda: not tip.is_displayed())


def test_arrow_keys_walk_through_the_bins(browser, pages):
    look(browser, pages["single"])
    figure = browser.find_element(By.CSS_SELECTOR, "figure svg.reliability")
    marks = [mark.get_attribute("data-tip") for mark in figure.find_elements(By.CSS_SELECTOR, ".mark")]
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'}); arguments[0].focus()", figure
    )
    tip = browser.find_element(By.ID, "tip")
    for wanted in marks[:2]:
        browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        until(browser, lambda wanted=wanted: tip.get_attribute("textContent") == wanted)
    browser.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    assert tip.get_attribute("textContent") == marks[0]
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


@pytest.mark.parametrize("name", ["single", "comparison"])
@pytest.mark.parametrize("width", [320, 375, 768])
def test_no_sideways_scrolling(browser, pages, name, width):
    look(browser, pages[name], width=width, height=800)
    browser.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true })")
    assert overflow(browser, width) <= 0


def test_the_tip_stays_on_a_phones_screen(browser, pages):
    look(browser, pages["single"], width=375, height=700)
    mark = browser.find_elements(By.CSS_SELECTOR, "figure svg.reliability .mark")[-1]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", mark)
    ActionChains(browser).move_to_element(mark).perform()
    until(browser, browser.find_element(By.ID, "tip").is_displayed)
    left, right = browser.execute_script(
        "const box = document.getElementById('tip').getBoundingClientRect(); return [box.left, box.right]"
    )
    assert left >= 0
    assert right <= 375


def test_pictures_have_words_and_tables_have_captions(browser, pages):
    look(browser, pages["comparison"])
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('svg')].filter(s => !s.getAttribute('aria-label') && "
        "s.getAttribute('aria-hidden') !== 'true').length"
    )
    assert unnamed == 0
    assert (
        browser.execute_script(
            "return document.querySelectorAll('table[data-sortable]:not(:has(caption))').length"
        )
        == 0
    )
    order = browser.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])"
    )
    assert order[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(order))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(browser, pages, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    look(browser, pages["single"])
    ink, page, muted = browser.execute_script(
        "const style = (part) => getComputedStyle(document.querySelector(part));"
        "return [style('body').color, style('body').backgroundColor, style('.about').color]"
    )
    assert contrast(ink, page) > 7
    assert contrast(muted, page) > 4.5


def contrast(one, two):
    """Return the contrast ratio of the accessibility guidelines."""

    def luminance(color):
        shares = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_prints_in_ink_on_paper_without_what_is_for_the_screen(browser, pages):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    look(browser, pages["comparison"])
    background, nav = browser.execute_script(
        "const style = (part) => getComputedStyle(document.querySelector(part));"
        "return [style('body').backgroundColor, style('nav').display]"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert background == "rgb(255, 255, 255)"
    assert nav == "none"


@pytest.mark.parametrize("name", ["single", "comparison"])
def test_prints_as_a_pdf_of_a_few_pages(browser, pages, name):
    look(browser, pages[name])
    paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
    content = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", paper)["data"])
    assert content.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 12


def test_is_there_within_a_second(browser, pages):
    look(browser, pages["comparison"])
    # Work of the page itself, not of a busy machine around it: elements to lay out and bytes to read.
    assert browser.execute_script("return document.querySelectorAll('*').length") < 5000
    assert browser.execute_script("return document.documentElement.outerHTML.length") < 500_000
