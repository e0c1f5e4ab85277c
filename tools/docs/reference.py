"""Write the reference from the docstrings: one page per package, made when the site is built.

The pages are read from the source without importing it, so that adapters to libraries that are not installed are
there too. `hooks.py` gives them to the site; nothing is written to `docs/`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from sources import SOURCE, Place, bases, find, members, public_names, signature, tree_of

#: The page of each package, and the modules whose public names stand on it.
PAGES = {
    "equipoise": ("equipoise",),
    "losses": ("equipoise.losses",),
    "calibrators": ("equipoise.calibrators",),
    "metrics": ("equipoise.metrics",),
    "evaluate": ("equipoise.evaluate",),
    "decisions": ("equipoise.decisions",),
    "training": ("equipoise.training",),
    "objectives": ("equipoise.objectives",),
    "data": ("equipoise.data",),
    "models": ("equipoise.models",),
    "theory": ("equipoise.theory",),
    "plots": ("equipoise.plots",),
    "report": ("equipoise.report",),
    "catalogue": ("equipoise.catalogue",),
    "experiments": ("equipoise.experiments",),
    "integrations": tuple(
        f"equipoise.integrations.{path.stem}"
        for path in sorted((SOURCE / "equipoise" / "integrations").glob("[!_]*.py"))
    ),
    "testing": ("equipoise.testing",),
    "core": ("equipoise.core", "equipoise.core.reading"),
    "kernels": ("equipoise.kernels.dispatch",),
    "cli": ("equipoise.cli",),
}
SECTION = re.compile(r"^(?P<name>[A-Z][\w' ]*):\n(?P<body>(?:[ ]{4}.*(?:\n|\Z)|\n)+)", re.MULTILINE)
ROLE = re.compile(r":(class|func|meth|data|mod|attr|exc|obj):`([^`]+)`")
LISTS = {"Args": "Parameters", "Attributes": "Attributes", "Raises": "Raises"}


class Entry(NamedTuple):
    """One public name: its full name, the page it stands on, and where it is written."""

    full: str
    page: str
    place: Place

    @property
    def short(self) -> str:
        return self.full.rpartition(".")[2]


@cache
def entries() -> dict[str, Entry]:
    """Give every public name once, on the page of the package nearest to the door."""
    found: dict[str, Entry] = {}
    written = {}
    for page, modules in PAGES.items():
        for module in modules:
            for name in public_names(module):
                place = find(module, name)
                if place is None or name == "__version__" or id(place.node) in written:
                    continue
                written[id(place.node)] = f"{module}.{name}"
                found[f"{module}.{name}"] = Entry(f"{module}.{name}", page, place)
    return found


@cache
def addresses() -> dict[str, str]:
    """Give where each name is, by its public name, by any package that lists it, and by where it is written."""
    known = {}
    places = {id(entry.place.node): entry for entry in entries().values()}
    for entry in entries().values():
        address = f"{entry.page}.md#{entry.full}"
        known[entry.full] = known[f"{entry.place.module}.{entry.place.name}"] = address
        if isinstance(entry.place.node, ast.ClassDef):
            for member in members(entry.place):
                known[f"{entry.full}.{member.name}"] = f"{address}.{anchor(member)}"
    for modules in PAGES.values():
        for module in modules:
            for name in public_names(module):
                place = find(module, name)
                if place is not None and id(place.node) in places:
                    other = places[id(place.node)]
                    known.setdefault(f"{module}.{name}", f"{other.page}.md#{other.full}")
    return known


def address_of(target: str, *, near: Entry | None = None) -> str | None:
    """Find what a role in a docstring means, seen from the name that the docstring belongs to."""
    known = addresses()
    target = target.lstrip("~").removesuffix("()")
    guesses = [target]
    if near is not None:
        package = near.full.rpartition(".")[0]
        guesses += [f"{near.full}.{target}", f"{package}.{target}", f"{near.place.module}.{target}"]
        if isinstance(near.place.node, ast.ClassDef):
            guesses += [f"{package}.{base.name}.{target}" for base in bases(near.place)]
    for guess in guesses:
        if guess in known:
            return known[guess]
    ends = {address for name, address in known.items() if name.endswith(f".{target}")}
    return ends.pop() if len(ends) == 1 else None


def pages() -> Iterator[tuple[str, str]]:
    """Give the address and the Markdown of every page."""
    yield "api/index.md", overview()
    for page, modules in PAGES.items():
        yield f"api/{page}.md", package(page, modules)


def overview() -> str:
    parts = [
        "# Reference",
        "",
        "Public names are those that a package lists; [Versions and files](../versions.md) states how long they stay. "
        "Import them from the package: `from equipoise.losses import FocalLoss`.",
        "",
    ]
    for page, modules in PAGES.items():
        mine = [entry for entry in entries().values() if entry.page == page]
        doc = (
            ast.get_docstring(tree_of(modules[0] if len(modules) == 1 else f"equipoise.{page}")) or ""
        ).split("\n\n")[0]
        parts += [f"## [{page}]({page}.md)", "", text(doc), ""]
        parts += [" · ".join(f"[{one.short}]({page}.md#{one.full})" for one in mine), ""]
    return "\n".join(parts)


def package(page: str, modules: tuple[str, ...]) -> str:
    """Write the page of one package."""
    top = "equipoise" if page == "equipoise" else f"equipoise.{page}"
    parts = [f"# {top}", "", text(ast.get_docstring(tree_of(top)) or ""), ""]
    for module in modules:
        mine = [one for one in entries().values() if one.page == page and one.full.startswith(f"{module}.")]
        mine = [one for one in mine if one.full.rpartition(".")[0] == module]
        if len(modules) > 1 and mine and module != top:
            parts += [f"`{module}`: {text(ast.get_docstring(tree_of(module)) or '')}", ""]
        parts += ["| name | what it is |", "|---|---|"]
        parts += [f"| [`{one.short}`](#{one.full}) | {one_line(one)} |" for one in mine]
        parts += [""]
        for one in mine:
            parts += item(one)
    if page == "equipoise":
        parts += [
            "The packages: " + ", ".join(f"[{name}]({name}.md)" for name in PAGES if name != page) + ".",
            "",
        ]
    return "\n".join(parts)


def one_line(entry: Entry) -> str:
    return text(" ".join(entry.place.doc.split("\n\n")[0].split()), near=entry).replace("|", "\\|")


def item(entry: Entry) -> list[str]:
    """Write one name: how it is called, what it says, and the methods of a class."""
    parts = [f"## {entry.short} {{ #{entry.full} }}", "", *code(signature(entry.place), "python")]
    parts += body(entry.place.doc, entry)
    if not isinstance(entry.place.node, ast.ClassDef):
        return parts
    for member in members(entry.place):
        parts += [f"### `{member.name}` {{ #{entry.full}.{anchor(member)} }}", ""]
        parts += code(_member_signature(member), "python")
        parts += body(member.doc, entry)
    return parts + inherited(entry)


def anchor(member: Place) -> str:
    return member.name.strip("_")  # two underscores would be read as bold


def _member_signature(member: Place) -> str:
    if member.decorated("property", "cached_property"):
        returns = member.node.returns
        return member.name + ("" if returns is None else f": {ast.unparse(returns)}")
    return signature(member)


def inherited(entry: Entry) -> list[str]:
    """Name what a class has from classes of ours."""
    own = {member.name for member in members(entry.place)}
    names = []
    for base in bases(entry.place):
        for member in members(base):
            if member.name not in own:
                own.add(member.name)
                address = address_of(f"{base.module}.{base.name}.{member.name}") or address_of(
                    f"{base.name}.{member.name}", near=entry
                )
                names.append(f"[`{member.name}`]({address})" if address else f"`{member.name}`")
    return [f"Also: {', '.join(names)}.", ""] if names else []


def code(content: str, language: str) -> list[str]:
    return [f"```{language}", content, "```", ""]


def body(docstring: str, entry: Entry) -> list[str]:
    """Turn a Google docstring into Markdown: sections as lists and blocks, the rest as text."""
    parts, last = [], 0
    for match in SECTION.finditer(docstring):
        parts += [text(docstring[last : match.start()].strip(), near=entry), ""]
        parts += section(match["name"], _unindented(match["body"]), entry)
        last = match.end()
    return [*parts, text(docstring[last:].strip(), near=entry), ""]


def _unindented(content: str) -> str:
    return "\n".join(line[4:] for line in content.rstrip().splitlines())


def section(name: str, content: str, entry: Entry) -> list[str]:
    if name in ("Example", "Examples"):
        return code(re.sub(r"  # doctest: \+.*", "", content), "pycon")
    if name in LISTS:
        items = [line for line in re.split(r"\n(?=\S)", content) if line.strip()]
        rows = [_bullet(" ".join(one.split()), entry) for one in items]
        return [f"**{LISTS[name]}**", "", *rows, ""]
    return [f"**{name}:** {text(content, near=entry)}", ""]


def _bullet(line: str, entry: Entry) -> str:
    name, _, says = line.partition(": ")
    names = ", ".join(f"`{one.strip('`')}`" for one in name.split(", "))
    return f"- {names}: {text(says, near=entry)}"


def text(content: str, *, near: Entry | None = None) -> str:
    """Turn the marks of docstrings into Markdown."""
    content = re.sub(r":math:`([^`]*)`", lambda found: f"${' '.join(found[1].split())}$", content)
    content = re.sub(r"^\.\. math::[ ]*(.*(?:\n[ ]+\S.*)*)", _display, content, flags=re.MULTILINE)
    content = re.sub(r"^::\n\n((?:[ ]+\S.*\n?|\n)+)", _literal, content, flags=re.MULTILINE)
    content = ROLE.sub(lambda found: _link(found[2], near), content)
    return re.sub(r"(?<!`)``(?!`)", "`", content)  # not the fences of blocks


def _display(found: re.Match[str]) -> str:
    formula = " ".join(found[1].split())
    return f"\n$$\n{formula}\n$$\n"


def _literal(found: re.Match[str]) -> str:
    lines = found[1].rstrip().splitlines()
    return "\n".join(["```text", *(line[4:] for line in lines), "```", ""])


def _link(target: str, near: Entry | None) -> str:
    shown = target.rpartition(".")[2] if target.startswith("~") else target
    address = address_of(target, near=near)
    return f"`{shown}`" if address is None else f"[`{shown}`]({address})"
