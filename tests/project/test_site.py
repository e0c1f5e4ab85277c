"""Every page of the site in a real browser: words and not markup, nothing wider than the window, no dead link."""

import json
import os
import re
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urldefrag, urljoin

import pytest

from helpers.browser import look, open_browser, overflow, resize

pytest.importorskip("mkdocs")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (1280, 390)
HEAVIEST = 500_000  # bytes of one page; the whole reference on one page was ten times that

#: What no reader should see outside code: marks of docstrings, Markdown and templates that were not understood.
RAW = re.compile(
    r":(?:class|func|meth|data|mod|math|attr|exc):|``|\*\*|\.\. \w+::|\$\$|\]\(|\{ ?[#:.]|<!--|-->|\|\s*-{3}|&\w+;"
    r"|^\s*```|^#{1,6} |Example:|\brequired\b$",
    re.MULTILINE,
)
#: The words of an article without its code and formulas.
WORDS = """
const article = document.querySelector('article').cloneNode(true);
article.querySelectorAll('pre, code, math, .headerlink, script, style').forEach(part => part.remove());
return article.textContent"""


class Page(HTMLParser):
    """What a page names and where it leads."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.leads, self.loads = {""}, set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.anchors |= {named[key] for key in ("id", "name") if named.get(key)}
        self.leads |= {named[key] for key in ("href", "src") if named.get(key)}
        if tag in ("script", "img", "link"):
            self.loads |= {named.get("src") or named.get("href") or ""}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    subprocess.run(words, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    # The index of the search is larger than all else, and every page would read it.
    index = folder / "search" / "search_index.json"
    index.write_text(json.dumps({**json.loads(index.read_text(encoding="utf-8")), "docs": []}))
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


@pytest.fixture(scope="module")
def address(site):
    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=site))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"), logs=["browser"])
    yield driver
    driver.quit()


def test_no_link_is_dead_and_nothing_comes_from_elsewhere(site, pages):
    read = {name: Page((site / name).read_text(encoding="utf-8")) for name in pages}
    dead = []
    for name, page in read.items():
        for lead in page.leads:
            if lead.startswith(("http://", "https://", "mailto:", "data:", "javascript:")):
                continue
            place, anchor = urldefrag(urljoin(f"/{name}", lead))
            target = unquote(place).lstrip("/") or "index.html"
            target = f"{target}index.html" if target.endswith("/") else target
            if name == "404.html" and lead.startswith("/"):
                continue
            if not (site / target).is_file() or (target in read and anchor not in read[target].anchors):
                dead.append(f"{name}: {lead}")
    assert dead == []
    foreign = [load for page in read.values() for load in page.loads if load.startswith(("http", "//"))]
    assert foreign == []


def test_pages_are_light(site, pages):
    assert {name: size for name in pages if (size := (site / name).stat().st_size) > HEAVIEST} == {}


def test_every_public_room_has_its_page(pages):
    packages = {path.parent.name for path in (ROOT / "src" / "equipoise").glob("*/__init__.py")}
    assert packages | {"equipoise", "testing", "index"} <= {
        Path(name).stem for name in pages if name.startswith("api/")
    }


def faults(browser):
    """Return what is wrong with the page that is open, in words."""
    raw = RAW.findall(browser.execute_script(WORDS))
    if raw:
        yield f"raw markup {sorted(set(raw))}"
    if "/api/" in browser.current_url and browser.find_elements("tag name", "blockquote"):
        yield "an example came out as a quotation"
    for width in WIDTHS:
        resize(browser, width=width)
        wider = overflow(browser, width)
        if wider > 0:
            yield f"{wider} pixels too wide at {width}"


def test_every_page_reads_well_and_fits_desktop_and_phone(browser, address, pages):
    wrong = []
    for name in pages:
        if name != "404.html":
            look(browser, f"{address}/{name}", width=WIDTHS[0])
            wrong += [f"{name}: {fault}" for fault in faults(browser)]
    logged = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert wrong == []
    assert logged == []


def test_a_bad_page_would_be_found(browser, address, site):
    page = site / "api" / "bad.html"
    words = "<article>**bold** and :func:`f`<blockquote>Example</blockquote><div>wide</div></article>"
    page.write_text(f"<!doctype html><style>div {{ width: 1300px }}</style>{words}", encoding="utf-8")
    look(browser, f"{address}/api/bad.html", width=WIDTHS[0])
    found = list(faults(browser))
    page.unlink()
    assert [fault.split()[0] for fault in found[:2]] == ["raw", "an"]
    assert [fault.split()[-1] for fault in found[2:]] == ["1280", "390"]


def test_a_click_on_a_heading_sorts_a_table(browser, tmp_path):
    cells = [("b", "10.5", "−1.0 [−2.0, 0.0]"), ("a", "9", "–"), ("c", "1,000", "+0.5 [0.1, 0.9]")]
    body = "".join(f"<tr>{''.join(f'<td>{one}</td>' for one in row)}</tr>" for row in cells)
    heads = "<tr><th>name</th><th>rows</th><th>difference</th></tr>"
    script = (ROOT / "docs" / "sort-tables.js").read_text("utf-8")
    page = tmp_path / "page.html"
    page.write_text(
        f'<meta charset="utf-8"><script>{script}</script><div class="sortable"><table><thead>{heads}</thead>'
        f"<tbody>{body}</tbody></table></div>",
        encoding="utf-8",
    )
    browser.get(page.as_uri())
    assert order(browser) == "bac"
    for column, (up, down) in enumerate([("abc", "cba"), ("abc", "cba"), ("bca", "acb")]):
        for expected in (up, down):
            browser.find_elements("tag name", "th")[column].click()
            assert order(browser) == expected


def order(browser):
    return "".join(row.text[0] for row in browser.find_elements("css selector", "tbody tr"))
