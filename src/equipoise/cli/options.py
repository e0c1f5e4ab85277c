"""Groups of options that several commands share; those that describe files of predictions are in ``inputs``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from equipoise.cli.inputs import one_or_several
from equipoise.core.choices import MOST_BINS, ScoreSettings
from equipoise.core.errors import SpecError

if TYPE_CHECKING:
    from equipoise.core.reading import Columns
    from equipoise.evaluate import AuditState
    from equipoise.experiments import Component, Execution, ScoringOptions, Spec

__all__ = [
    "FRACTION",
    "METRIC_LIMIT",
    "OPTIONAL_MARGIN",
    "PERCENT",
    "Engine",
    "TrainingRequest",
    "cluster_option",
    "engine_options",
    "group_columns",
    "json_option",
    "margin_option",
    "quiet_option",
    "run_selection_options",
    "scoring_options",
    "style_option",
    "target_options",
    "training_options",
    "verify_option",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Share(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A share: ``5%`` or ``0.05``.

    Args:
        open_ends: Whether 0 and 1 are errors.
    """

    name = "SHARE"

    def __init__(self, *, open_ends: bool = False) -> None:
        self._open_ends = open_ends

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        if not isinstance(value, str):
            return value
        text = value.strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{value!r} must be a share such as 5% or 0.05.", param, ctx)
        if not 0 <= number <= 1:
            hint = f"; for percent write {value}%" if not text.endswith("%") and 1 < number <= 100 else ""
            self.fail(f"{value!r} must be from 0 to 1{hint}.", param, ctx)
        if self._open_ends and number in (0, 1):
            self.fail(f"{value!r} must be above 0 and below 1.", param, ctx)
        return number


#: ``5%`` or ``0.05``, from 0 to 1.
PERCENT = _Share()
#: The same, strictly between 0 and 1.
FRACTION = _Share(open_ends=True)
_MOST_RESAMPLES = 100_000

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print results only.")
verify_option = click.option(
    "--verify",
    is_flag=True,
    help="Hash every file of the runs; by default only those whose size or time differ.",
)
style_option = click.option(
    "--format",
    "style",
    type=click.Choice(["text", "markdown", "latex", "html", "csv"]),
    default="text",
    show_default=True,
    help="How the table is written.",
)


def _add(function: Any, options: Sequence[Callable[[Any], Any]]) -> Any:
    """Add options to a command, in the order in which ``--help`` shows them."""
    for option in reversed(options):
        function = option(function)
    return function


# How predictions are scored.

_SCORING = {
    "n_bins": click.option(
        "--bins",
        "n_bins",
        default=ScoreSettings().n_bins,
        type=click.IntRange(1, MOST_BINS),
        show_default=True,
        help="Bins of equal width.",
    ),
    "closed": click.option(
        "--closed",
        type=click.Choice(["right", "left"]),
        default=ScoreSettings().closed,
        show_default=True,
        help="Which side of a bin belongs to it.",
    ),
    "level": click.option(
        "--level",
        default=ScoreSettings().level,
        type=FRACTION,
        show_default=True,
        help="Level of intervals and tests.",
    ),
    "n_resamples": click.option(
        "--resamples",
        "n_resamples",
        default=ScoreSettings().n_resamples,
        type=click.IntRange(1, _MOST_RESAMPLES),
        show_default=True,
        help="Bootstrap resamples.",
    ),
    "seed": click.option(
        "--seed",
        default=ScoreSettings().seed,
        type=click.IntRange(min=0),
        show_default=True,
        help="Random seed for resampling.",
    ),
}
_TARGET = {
    "target": click.option(
        "--target",
        type=click.Choice(["top", "positive", "classwise"]),
        help="Which probability is scored: the confidence of the predicted class, the probability of the positive "
        "class of two, or the probability of every class. By default the predicted class; also the positive class if "
        "two classes have clearly unequal frequencies.",
    ),
    "positive": click.option(
        "--positive",
        metavar="CLASS",
        help="The positive class, by name or number; by default class 1. Implies --target positive.",
    ),
}
#: For commands that read rows.
cluster_option = click.option(
    "--cluster",
    metavar="NAME",
    help="Column of clusters of rows that depend on each other, such as the image of a pixel or the author of a post: "
    "intervals and tests resample clusters, not rows.",
)


def scoring_options(function: F) -> F:
    """Add the options of scoring; the command gets them as one argument ``settings``."""

    @wraps(function)
    def command(*args: Any, **options: Any) -> Any:
        settings = ScoreSettings(**{name: options.pop(name) for name in _SCORING})._asdict()
        return function(*args, settings=settings, **options)

    result: F = _add(command, tuple(_SCORING.values()))
    return result


def target_options(function: F) -> F:
    """Add ``--target`` and ``--positive`` to the ``settings`` of scoring; to be used below `scoring_options`."""

    @wraps(function)
    def command(*args: Any, settings: dict[str, Any], **options: Any) -> Any:
        chosen = {name: options.pop(name) for name in _TARGET}
        return function(*args, settings=settings | chosen, **options)

    result: F = _add(command, tuple(_TARGET.values()))
    return result


def group_columns(columns: Columns, by: Sequence[str], cluster: str | None) -> Columns:
    """Return the columns to read from files, with those of groups and of clusters."""
    named = (*by, *([cluster] if cluster is not None and cluster not in by else []))
    return columns | {"groups": named} if named else columns


# Where files are summed.


class Engine(NamedTuple):
    """Where files are summed.

    Attributes:
        name: ``"local"`` or ``"ray"``.
        address: The address of the cluster; None starts one on this machine.
    """

    name: str = "local"
    address: str | None = None

    def sums(
        self, files: Sequence[str], columns: Columns, by: Sequence[str] | None, settings: dict[str, Any]
    ) -> AuditState:
        """Return the sums of all files, one task per file."""
        from equipoise.integrations.ray import sum_on_ray

        binned = {name: settings[name] for name in ("n_bins", "closed", "positive")}
        return sum_on_ray(one_or_several(files), by=by, address=self.address, **binned, **columns)


def engine_options(function: F) -> F:
    """Add ``--engine`` and ``--address``; the command gets them as one argument ``engine``."""

    @wraps(function)
    def command(*args: Any, engine: str, address: str | None, **options: Any) -> Any:
        if address is not None and engine != "ray":
            raise click.UsageError("--address needs --engine ray.")
        return function(*args, engine=Engine(engine, address), **options)

    options = (
        click.option(
            "--engine",
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
            help="Where files are summed: here, or each by a worker of a Ray cluster.",
        ),
        click.option(
            "--address", metavar="ADDRESS", help="The Ray cluster, or 'auto'; by default one is started here."
        ),
    )
    result: F = _add(command, options)
    return result


# Limits and margins, such as ``ece=0.03``.


class _MetricLimit(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A metric and a number: ``ece=0.03`` or ``ece=3%``.

    Args:
        margin: Whether the number is a difference of the metric.
        optional: Whether the number may be missing.
    """

    def __init__(self, *, margin: bool = False, optional: bool = False) -> None:
        number = "MARGIN" if margin else "NUMBER"
        self.name = f"METRIC[={number}]" if optional else f"METRIC={number}"
        self._margin, self._optional = margin, optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the metric and the number, or None for it."""
        if isinstance(value, tuple) or (ctx is not None and ctx.resilient_parsing):
            return value  # shell completion must not load the metrics
        from equipoise.metrics.facts import metric_facts

        metric, given, text = (part.strip() for part in str(value).partition("="))
        try:
            facts = metric_facts(metric, what="limit", of="card")
        except SpecError as error:
            self.fail(str(error), param, ctx)
        if not given and self._optional:
            return metric, None
        number = _parse_number(text)
        if number is None:
            self.fail(f"{value!r} must have the form {metric}=0.03 or {metric}=3%.", param, ctx)
        low, high = (0.0, facts.high - facts.low) if self._margin else (facts.low, facts.high)
        if not low <= number <= high:
            self.fail(_describe_range(metric, text, low, high, percent=facts.percent), param, ctx)
        return metric, number


def _describe_range(metric: str, text: str, low: float, high: float, *, percent: bool) -> str:
    """Return the error for a number that the metric cannot reach, so that a gate would always pass, or never."""
    if percent and "%" not in text and low <= float(text) / 100 <= high:
        return f"{metric} is a fraction from {low:g} to {high:g}; for percent write {metric}={text}%."
    scale, unit = (100, "%") if percent else (1, "")
    expected = (
        f"at least {scale * low:g}{unit}"
        if math.isinf(high)
        else f"from {scale * low:g}{unit} to {scale * high:g}{unit}"
    )
    return f"{metric} cannot be {text}: expected a number {expected}."


def _parse_number(text: str) -> float | None:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


#: ``ece=0.03``
METRIC_LIMIT = _MetricLimit()
#: ``ece`` or ``ece=0.01``
OPTIONAL_MARGIN = _MetricLimit(margin=True, optional=True)

margin_option = click.option(
    "--margin",
    "margins",
    type=_MetricLimit(margin=True),
    multiple=True,
    help="Test whether methods are equivalent to the baseline: a smaller difference of METRIC counts as none.",
)


# Which run of a folder is used.

_DATA = click.option("--data", "root", type=click.Path(), help="Data folder; else EQUIPOISE_DATA.")
_RUN_SELECTION = (
    click.option(
        "--calibrator",
        metavar="NAME",
        help="A calibrator of the run, identity for none, or a file of one; by default the only one.",
    ),
    click.option(
        "--decision",
        "decision_path",
        type=click.Path(path_type=Path, dir_okay=False),
        help="A threshold that `equipoise decide` certified on predictions of this model: `accept` goes along.",
    ),
    click.option("--method", metavar="NAME", help="The method, in a folder of several runs."),
    click.option("--seed", type=int, help="The seed, in a folder of several runs."),
    _DATA,
    click.option(
        "--code",
        type=click.Path(),
        help="The folder of the spec, if it named code; else the current one.",
    ),
)


def run_selection_options(function: F) -> F:
    """Add the options that choose one run of a folder, and its calibrator."""
    result: F = _add(function, _RUN_SELECTION)
    return result


# How runs are trained.


class TrainingRequest(NamedTuple):
    """The options that `train` and `compare` share.

    Attributes:
        out: The folder of run folders.
        overrides: Keys of the spec that get other values.
        no_code: Whether a spec that names code is an error.
        scoring: How runs are scored.
        execution: How runs are executed.
        as_json: Whether results are printed as JSON.
        quiet: Whether only results are printed.
    """

    out: Path
    overrides: tuple[str, ...]
    no_code: bool
    scoring: ScoringOptions
    execution: Execution
    as_json: bool
    quiet: bool

    def announce_code(
        self, specs: Sequence[Spec], extra: Mapping[str, Sequence[Component]], where: str
    ) -> None:
        """Print which files of code will be run before any is; or raise if code is not allowed."""
        from equipoise.experiments import code_files, refuse_code
        from equipoise.training.processes import is_first_process

        if self.no_code:
            refuse_code(specs, where=where, extra=extra)
        files = code_files(specs, where=where, extra=extra)
        if files and not self.quiet and is_first_process():
            click.echo(f"{where} runs code: {', '.join(map(_relative, files))}", err=True)


def _relative(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


_TRAINING = (
    click.option(
        "--out", default="runs", show_default=True, type=click.Path(path_type=Path), help="Run folders."
    ),
    _DATA,
    click.option("--download", is_flag=True, help="Download official files that are missing."),
    click.option(
        "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key, e.g. recipe.epochs=5."
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=0),
        default=0,
        help="Threads per run; by default the cores are divided between runs.",
    ),
    click.option("--accelerator", default="auto", show_default=True, help="cpu, cuda, mps ..."),
    click.option(
        "--devices",
        type=click.IntRange(min=1),
        help="Devices, and so processes, of each run on a machine; under torchrun leave it out.",
    ),
    click.option("--nodes", type=click.IntRange(min=1), help="Machines of one run."),
    click.option("--strategy", help="How processes share a run: ddp ... (Lightning Fabric's names)."),
    click.option("--precision", help="32-true, bf16-mixed, 64-true ...; part of a run's identity."),
    click.option("--compile/--no-compile", default=None, help="Train through torch.compile."),
    click.option(
        "--loader-workers",
        type=click.IntRange(min=0),
        help="Processes that read images from disk, for each process of a run.",
    ),
    click.option(
        "--sync-batchnorm/--no-sync-batchnorm",
        default=None,
        help="Batch norm over all processes (the default), or in each; part of a run's identity.",
    ),
    click.option(
        "--keep-memory/--no-keep-memory",
        default=True,
        show_default=True,
        help="Reuse memory between training steps: faster on a CPU, but the peak is held to the end.",
    ),
    click.option("--resamples", default=1000, show_default=True, help="Bootstrap resamples."),
    click.option("--no-code", is_flag=True, help="Raise an error if the spec names code to run."),
    verify_option,
    json_option,
    quiet_option,
)


def training_options(function: F) -> F:
    """Add the options that training and comparing share; the command gets them as one argument ``request``."""

    @wraps(function)
    def command(
        *args: Any,
        out: Path,
        root: str | None,
        download: bool,
        overrides: tuple[str, ...],
        threads: int,
        accelerator: str,
        devices: int | None,
        nodes: int | None,
        strategy: str | None,
        compile: bool | None,
        loader_workers: int | None,
        precision: str | None,
        sync_batchnorm: bool | None,
        keep_memory: bool,
        resamples: int,
        no_code: bool,
        verify: bool,
        as_json: bool,
        quiet: bool,
        **others: Any,
    ) -> Any:
        from equipoise.experiments import Execution, ScoringOptions

        execution = Execution(
            accelerator=None if accelerator == "auto" else accelerator,
            devices=devices,
            nodes=nodes,
            strategy=strategy,
            compile=compile,
            loader_workers=loader_workers,
            root=root,
            download=download,
            threads=threads,
            keep_memory=keep_memory,
            verify=verify,
            quiet=quiet or as_json,
        )
        recipe = {"precision": precision and json.dumps(precision), "sync_batchnorm": sync_batchnorm}
        overrides += tuple(
            f"recipe.{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in recipe.items()
            if value is not None
        )
        scoring = ScoringOptions(n_resamples=resamples)
        request = TrainingRequest(out, overrides, no_code, scoring, execution, as_json, quiet)
        return function(*args, request=request, **others)

    result: F = _add(command, _TRAINING)
    return result
