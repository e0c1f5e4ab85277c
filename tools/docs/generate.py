"""Write the pages of all methods and of evidence, or check that they are fresh.

python tools/docs/generate.py            write docs/methods/ from the catalogue, docs/evidence/ from evidence/
python tools/docs/generate.py --check    fail if a page is stale, missing or left over
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "evidence"))
from draw import caption, gradient_picture
from pages.quotes import quoting_pages
from pages.write import HOME, evidence_pages
from usages import (
    calibrator_usage,
    data_usage,
    factories,
    loaded,
    loss_usage,
    metric_usage,
    spec_usage,
    spelled,
)

from equipoise.catalogue import CATALOGUE, Entry, MethodOption, options_of
from equipoise.metrics.facts import MetricFacts, metric_facts

FOLDER = ROOT / "docs" / "methods"
NOTE = "<!-- Written by tools/docs/generate.py from the catalogue and the docstrings; edit those. -->"
SECTION = re.compile(r"^(?P<name>[A-Z][^\n:]*):\n(?P<body>(?:[ ]{4}.*\n?|\n)+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Category:
    """A folder of pages: which methods, and what is drawn and shown of each."""

    title: str
    opening: str
    entries: Mapping[str, Entry]
    usage: Callable[[Entry], str]
    figure: Callable[[Entry], str] | None = None
    caption: Callable[[Entry], str] | None = None


CATEGORIES = {
    "losses": Category(
        title="Losses",
        opening="Every loss has the signature of `nn.CrossEntropyLoss`. [Choose a loss](../../choose-a-loss.md) "
        "says in plain words which one to take.",
        entries={**CATALOGUE["losses"], **CATALOGUE["penalties"]},
        usage=loss_usage,
        figure=gradient_picture,
        caption=caption,
    ),
    "objectives": Category(
        title="Objectives",
        opening="Methods that own their step. [Train](../../training.md) says how to run them, and how to write one.",
        entries=CATALOGUE["objectives"],
        usage=spec_usage("method"),
    ),
    "calibrators": Category(
        title="Calibrators",
        opening="Maps fitted on held-out predictions. [Choose a calibrator](../../choose-a-calibrator.md) says which.",
        entries=CATALOGUE["calibrators"],
        usage=calibrator_usage,
    ),
    "metrics": Category(
        title="Metrics",
        opening="Numbers about predictions. [Choose a metric](../../choose-a-metric.md) says which to report.",
        entries=CATALOGUE["metrics"],
        usage=metric_usage,
    ),
    "datasets": Category(
        title="Datasets",
        opening="Data by name. [Data](../../data.md) says where to put files, and how to bring your own.",
        entries=CATALOGUE["datasets"],
        usage=data_usage,
    ),
    "models": Category(
        title="Networks",
        opening="Networks by name. [Networks](../../models.md) says which is which.",
        entries=CATALOGUE["models"],
        usage=spec_usage("model"),
    ),
    "recipes": Category(
        title="Recipes",
        opening="How the papers trained, and quick ways for small machines.",
        entries=CATALOGUE["recipes"],
        usage=spec_usage("recipe"),
    ),
}


def pages() -> Iterator[tuple[Path, str]]:
    """Give every generated file with its content."""
    for name, category in CATEGORIES.items():
        yield FOLDER / name / "index.md", index(category)
        for key, entry in category.entries.items():
            yield FOLDER / name / f"{slug(key)}.md", page(category, entry)
            if category.figure:
                yield FOLDER / name / "figures" / f"{slug(key)}.svg", category.figure(entry)
    yield from evidence_pages()
    yield from quoting_pages()


def slug(key: str) -> str:
    """Turn a key into a file name: ``focal+mdca`` is ``focal-mdca``."""
    return key.replace("+", "-")


def index(category: Category) -> str:
    """Write the table of a category."""
    rows = [
        f"| [`{key}`]({slug(key)}.md) | {entry.title} | {entry.summary} | {', '.join(sorted(entry.needs)) or '–'} |"
        for key, entry in category.entries.items()
    ]
    table = ["| key | name | what it does | needs |", "|---|---|---|---|", *rows]
    return "\n".join([NOTE, f"# {category.title}", "", category.opening, "", *table, ""])


def page(category: Category, entry: Entry) -> str:
    """Write the page of one method."""
    parts = [NOTE, f"# {entry.title}", "", entry.summary, ""]
    parts += ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts(entry)), ""]
    for heading, text in (("When to use it", entry.use_when), ("When not", entry.avoid_when)):
        if text:
            parts += [f"## {heading}", "", text, ""]
    if entry.formula:
        parts += ["## Formula", "", "$$", entry.formula, "$$", ""]
    if category.figure and category.caption:
        figure = f"figures/{slug(entry.key)}.svg"
        parts += ["## Figure", "", f"![{entry.title}]({figure})", "", category.caption(entry), ""]
    parts += ["## Use", "", category.usage(entry), ""]
    options = [option for option in options_of(entry) if option.name != "parts"]
    if options:
        parts += ["## Options", "", "| option | default | meaning |", "|---|---|---|", *map(row, options), ""]
    differs = differences(entry)
    if differs:
        parts += ["## Differs from the authors' code", "", markdown(" ".join(differs.split())), ""]
    return "\n".join(parts)


def facts(entry: Entry) -> Iterator[tuple[str, str]]:
    """Give the rows of the table at the top of a page."""
    yield "key", f"`{entry.key}`"
    places = [f"`{'.'.join(one.__module__.split('.')[:2])}.{one.__qualname__}`" for one in factories(entry)]
    is_data = CATALOGUE["datasets"].get(entry.key) is entry
    yield "in Python", loaded(entry) if is_data else " + ".join(places)
    if entry.paper:
        yield "paper", entry.paper
    yield "fidelity", entry.fidelity
    if entry.sum:
        yield "sum", f"`{entry.sum}`"
    if entry.options:
        yield (
            "main setting",
            ", ".join(f"`{key} = {spelled(value)}`" for key, value in entry.options.items()),
        )
    if entry.needs:
        yield "needs", ", ".join(sorted(entry.needs))
    if CATALOGUE["metrics"].get(entry.key) is entry:
        yield from known_facts(metric_facts(entry.key))


def known_facts(metric: MetricFacts) -> Iterator[tuple[str, str]]:
    """Give what is known about a metric, and why scorecards do not hold it if they do not."""
    yield "better", {"lower": "lower", "higher": "higher", "zero": "nearest to zero"}[metric.better]
    range_ = f"{metric.low:g} to {metric.high:.4g}".replace("to inf", "upwards")
    yield "range", f"{range_}, shown in percent" if metric.percent else range_
    if metric.home == "card":
        yield (
            "two models",
            "compared row by row (`equipoise.compare`)"
            if metric.is_paired
            else "compared by their intervals",
        )
    else:
        yield "scorecards", f"do not hold it: {metric.instead}"


def differences(entry: Entry) -> str:
    """Find the section in the method's function, which stands beside its class, or in the factory itself."""
    factory = factories(entry)[-1]
    factory = getattr(factory, "__self__", factory)  # the class of a class method
    module = inspect.getmodule(factory)
    functions = [
        value
        for value in vars(module).values()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    candidates = [factory] if factory in functions else [factory, *functions]
    found = (section(inspect.getdoc(each), "Differs from the authors' code") for each in candidates)
    return next(filter(None, found), "")


def section(docstring: str | None, name: str) -> str:
    """Return the body of one section of a Google docstring, unindented."""
    for match in SECTION.finditer((docstring or "") + "\n"):
        if match["name"] == name:
            return inspect.cleandoc(match["body"])
    return ""


def row(option: MethodOption) -> str:
    """Turn an option into a row of a table."""
    meaning = option.meaning.replace("|", "\\|")
    return f"| `{option.name}` | {f'`{option.default}`' if option.default else '(none)'} | {meaning} |"


def markdown(text: str) -> str:
    """Turn the marks of docstrings into Markdown."""
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text)
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


def main() -> int:
    """Write or check all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file differs")
    check = parser.parse_args().check
    wanted = dict(pages())
    there = {
        path for home in (HOME, *(FOLDER / category for category in CATEGORIES)) for path in home.rglob("*.*")
    }
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    left_over = sorted(there - set(wanted))
    if check:
        for path in [*stale, *left_over]:
            print(f"{path.relative_to(ROOT)} is stale: run python tools/docs/generate.py")
        return 1 if stale or left_over else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    for path in left_over:
        path.unlink()
    print(f"{len(stale)} of {len(wanted)} files written, {len(left_over)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
