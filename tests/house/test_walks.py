"""The walks of the map: every step is there, and a command that runs goes that way, in that order."""

import ast
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import equipoise
from equipoise.cli import main
from equipoise.experiments.specs.toml import format_toml
from equipoise.kernels.dispatch import use_backend

HOME = Path(equipoise.__path__[0])
MAP = (Path(__file__).parents[2] / "docs" / "house.md").read_text(encoding="utf-8")
STEP = re.compile(r"(?P<how>→|,|or)?\s*`(?P<file>[\w/]+\.py): (?P<name>[\w.]+)`")
#: The smallest comparison that chooses something.
SPEC = {
    "data": {"name": "digits", "options": {"noise": 0.3}},
    "model": {"name": "mlp", "options": {"hidden": [4]}},
    "method": ["ce", {"name": "focal", "choose": {"gamma": [1.0, 2.0]}}],
    "recipe": {"name": "quick", "epochs": 1},
}


class Step(NamedTuple):
    """A step of a walk: where it is, and the step that calls it, if the map says so."""

    place: tuple[str, str]
    caller: tuple[str, str] | None
    is_taken: bool


def read_steps(cell):
    """Give the steps of one row; after a comma the caller is that of the step before."""
    steps = []
    for found in STEP.finditer(cell):
        before = [step for step in steps if step.is_taken]
        caller = {
            "→": before[-1].place if before else None,
            ",": before[-1].caller if before else None,
            "or": before[-1].caller if before else None,
            None: None,
        }[found["how"]]
        steps.append(Step((found["file"], found["name"]), caller, found["how"] != "or"))
    assert STEP.sub("", cell).strip() == "", f"{cell}: has words that are no step"
    return steps


def read_walks():
    """Give the steps of every command of the map."""
    text = MAP[MAP.index("## Walks") : MAP.index("## Who knows what")]
    walks = {}
    for found in re.finditer(r"^`equipoise (\w+)[^\n]*\n\n((?:\|.*\n)+)", text, re.MULTILINE):
        rows = [line.strip("| ").split(" | ") for line in found[2].splitlines()[2:]]
        steps = []
        for _, cell in rows:
            first, *others = read_steps(cell)
            # A row that begins where the walk has been goes on from there.
            steps += others if any(first.place == step.place for step in steps) else [first, *others]
        walks[found[1]] = steps
    return walks


WALKS = read_walks()
STEPS = [step for steps in WALKS.values() for step in steps]


def names_in(file):
    """Give every function and method of a file, by the name that Python gives its code."""

    def below(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                yield f"{prefix}{child.name}"
                if isinstance(child, ast.ClassDef):
                    yield from below(child, f"{prefix}{child.name}.")

    return set(below(ast.parse((HOME / file).read_text(encoding="utf-8")), ""))


def test_there_are_walks():
    assert set(WALKS) == {"compare", "report", "audit"}
    assert len(STEPS) > 60


@pytest.mark.parametrize("place", sorted({step.place for step in STEPS}), ids=": ".join)
def test_steps_are_in_exactly_that_file(place):
    file, name = place
    assert name in names_in(file)


class Entered(NamedTuple):
    """A function that was entered, and those that were under way."""

    place: tuple[str, str]
    under_way: frozenset


class Trace(list):
    """While it is open, keeps the functions of the map that are entered, in order."""

    def __init__(self, wanted):
        super().__init__()
        self._wanted, self._known = wanted, {}

    def __enter__(self):
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _note(self, frame, event, _):
        if event == "call" and (place := self._place(frame.f_code)) is not None:
            under_way = set()
            while (frame := frame.f_back) is not None:
                under_way.add(self._place(frame.f_code))
            self.append(Entered(place, frozenset(under_way)))

    def _place(self, code):
        """Return where a step of the map is; None for anything else."""
        if code not in self._known:
            file = Path(code.co_filename)
            is_ours = file.is_relative_to(HOME) and code.co_flags & inspect.CO_OPTIMIZED
            # A function inside a function is a part of it: what a decorator makes, for example.
            name = code.co_qualname.partition(".<locals>")[0]
            place = (file.relative_to(HOME).as_posix(), name) if is_ours else None
            self._known[code] = place if place in self._wanted else None
        return self._known[code]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Run each command of the map once, on the smallest input that goes all the way."""
    folder = tmp_path_factory.mktemp("walks")
    rng = np.random.default_rng(0)
    np.savez(folder / "file.npz", logits=rng.normal(size=(60, 3)), labels=np.arange(60) % 3)
    (folder / "spec.toml").write_text(format_toml(SPEC), encoding="utf-8")
    runs = str(folder / "runs")
    quick = ["--resamples", "20", "--quiet"]
    commands = {
        "audit": ["audit", str(folder / "file.npz"), "--report", str(folder / "audit.html"), *quick],
        "compare": ["compare", str(folder / "spec.toml"), "--workers", "1", "--out", runs, *quick],
        "report": ["report", runs, "--output", str(folder / "report.html"), "--quiet"],
    }
    commands["compare"] += ["--threads", "1", "--accelerator", "cpu"]
    for file, _ in {step.place for step in STEPS if step.is_taken}:
        import_module(
            f"equipoise.{file.removesuffix('.py').replace('/', '.')}"
        )  # not while it is watched: slow
    found = {}
    for name, words in commands.items():
        with use_backend("fallback"), Trace({step.place for step in STEPS}) as trace:
            assert main(words) == 0
        found[name] = trace
    return found


def follow(steps, trace):
    """Return the first step that the trace does not take after those before it, or None."""
    entered = iter(trace)
    for step in steps:
        if not any(
            one.place == step.place and (step.caller is None or step.caller in one.under_way)
            for one in entered
        ):
            return step
    return None


@pytest.mark.parametrize("command", sorted(WALKS))
def test_the_command_goes_the_way_of_its_walk(command, traces):
    assert follow([step for step in WALKS[command] if step.is_taken], traces[command]) is None


@pytest.mark.parametrize("command", sorted(WALKS))
def test_another_order_or_another_caller_would_be_noticed(command, traces):
    steps = [step for step in WALKS[command] if step.is_taken]
    assert follow(steps[::-1], traces[command]) is not None
    wrong = steps[-1]._replace(caller=("core/seeds.py", "derive_seed"))
    assert follow([*steps[:-1], wrong], traces[command]) == wrong
