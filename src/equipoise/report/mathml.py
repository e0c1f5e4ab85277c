"""Formulas as browsers draw them themselves: the LaTeX that the catalogue uses, as MathML."""

from __future__ import annotations

import re

from equipoise.report.markup import Markup, tag

__all__ = ["formula_markup"]

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|[^\s]")
_TEXT = re.compile(r"\s*\{([^{}]*)\}")
_LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε", "eta": "η",
    "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "ϕ", "varphi": "φ", "omega": "ω", "ell": "ℓ", "Delta": "Δ", "Sigma": "Σ", "Phi": "Φ", "Omega": "Ω",
}  # fmt: skip
_SIGNS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈", "propto": "∝", "in": "∈",
    "ni": "∋", "notin": "∉", "cdot": "·", "times": "×", "circ": "∘", "pm": "±", "to": "→", "leftarrow": "←",
    "rightarrow": "→", "mid": "∣", "nabla": "∇", "partial": "∂", "infty": "∞", "dots": "…", "ldots": "…", "odot": "⊙",
    "cdots": "⋯", "lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|", "langle": "⟨", "rangle": "⟩", "sim": "∼",
    "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "forall": "∀", "star": "⋆", "ll": "≪", "gg": "≫",
    "top": "⊤", "cup": "∪", "cap": "∩", "setminus": "∖", "subset": "⊂", "mapsto": "↦", "{": "{", "}": "}",
    "|": "‖", "%": "%", "_": "_", "&": "&", "#": "#", "lbrace": "{", "rbrace": "}",
}  # fmt: skip
_LARGE = {"sum": "∑", "prod": "∏", "int": "∫"}
_FUNCTIONS = frozenset(
    {"log", "exp", "max", "min", "sup", "inf", "arg", "argmin", "argmax", "tanh", "sin", "cos", "det", "dim", "ln"}
)  # fmt: skip
_ACCENTS = {"bar": "¯", "hat": "^", "tilde": "~", "overline": "¯", "widehat": "^", "vec": "→"}
_SPACES = {",": "0.17em", ";": "0.28em", ":": "0.22em", " ": "0.3em", "quad": "1em", "qquad": "2em", "!": "0"}
_NAMES = frozenset({"mathrm", "operatorname", "text", "mathbf", "textit", "mathcal", "mathbb"})
_IGNORED = frozenset({
    "left", "right", "Bigl", "Bigr", "bigl", "bigr", "Big", "big", "biggl", "biggr", "Biggl", "Biggr", "textstyle",
    "displaystyle", "limits",
})  # fmt: skip


class _UnknownError(Exception):
    """A command that this reader does not know."""


def formula_markup(latex: str) -> Markup:
    r"""Return a formula as MathML; as the LaTeX it is where it uses something unknown.

    Args:
        latex: Without dollar signs.

    Example:
        >>> formula_markup(r"p_y^2")
        '<math display="block"><msubsup><mi>p</mi><mi>y</mi><mn>2</mn></msubsup></math>'
        >>> formula_markup(r"\unheardof{x}")
        '<code>\\unheardof{x}</code>'
    """
    try:
        reader = _Reader(latex)
        parts = reader.row(until=None)
    except (_UnknownError, IndexError, RecursionError):
        return tag("code", latex)
    return tag("math", *parts, display="block")


class _Reader:
    """Reads LaTeX from left to right."""

    def __init__(self, latex: str) -> None:
        self.latex, self.place = latex, 0

    def peek(self) -> str | None:
        """Return the next word without taking it."""
        found = _TOKEN.search(self.latex, self.place)
        return found.group() if found else None

    def take(self) -> str:
        """Return the next word and move on."""
        found = _TOKEN.search(self.latex, self.place)
        if found is None:
            raise _UnknownError
        self.place = found.end()
        return found.group()

    def row(self, until: str | None) -> list[Markup]:
        """Return everything up to a closing brace, or the end."""
        parts: list[Markup] = []
        while (word := self.peek()) != until:
            if word is None or word == "}":
                raise _UnknownError
            part = self.scripted()
            if part is not None:
                parts.append(part)
        if until is not None:
            self.take()
        return parts

    def scripted(self) -> Markup | None:
        """Return one thing with what stands above and below it."""
        base = self.atom()
        if base is None:
            return None
        below = above = None
        primes = ""
        while (word := self.peek()) in ("_", "^", "'"):
            self.take()
            if word == "'":
                primes += "′"
            elif word == "_":
                below = self.argument()
            else:
                above = self.argument()
        if primes:
            prime = tag("mo", primes)
            above = prime if above is None else tag("mrow", prime, above)
        under = base.startswith("<mo data-large") or base in _UNDER
        if below is not None and above is not None:
            return tag("munderover" if under else "msubsup", base, below, above)
        if below is not None:
            return tag("munder" if under else "msub", base, below)
        if above is not None:
            return tag("mover" if under else "msup", base, above)
        return base

    def argument(self) -> Markup:
        """Return a group in braces, or one thing."""
        if self.peek() == "{":
            self.take()
            parts = self.row(until="}")
            return parts[0] if len(parts) == 1 else tag("mrow", *parts)
        part = self.digit_or_atom()
        if part is None:
            raise _UnknownError
        return part

    def digit_or_atom(self) -> Markup | None:
        """Return one digit, because two digits after a fraction are its two parts; or one thing."""
        word = self.peek()
        if word is not None and word[0].isdigit():
            self.place = self.latex.index(word, self.place) + 1
            return tag("mn", word[0])
        return self.atom()

    def atom(self) -> Markup | None:
        """Return one thing; None for what only sets sizes."""
        word = self.take()
        if word == "{":
            parts = self.row(until="}")
            return tag("mrow", *parts)
        if word[0] == "\\":
            return self.command(word[1:])
        if word[0].isdigit():
            return tag("mn", word)
        if word.isalpha():
            return tag("mi", word)
        if word in "_^'":
            raise _UnknownError
        return tag("mo", "−" if word == "-" else word, stretchy="false" if word in "()[]|" else None)

    def command(self, name: str) -> Markup | None:
        """Return what a command stands for."""
        if name in _LETTERS:
            return tag("mi", _LETTERS[name])
        if name in _SIGNS:
            return tag("mo", _SIGNS[name], stretchy="false" if name in "{}|" or name[1:] == "Vert" else None)
        if name in _LARGE:
            return tag("mo", _LARGE[name], data_large=True)
        if name in _FUNCTIONS:
            return (
                tag("mrow", tag("mi", name), tag("mspace", width="0.16em"))
                if name not in _LIMITS
                else tag("mi", name)
            )
        if name in _SPACES:
            return tag("mspace", width=_SPACES[name])
        if name in ("frac", "tfrac", "dfrac"):
            return tag("mfrac", self.argument(), self.argument())
        if name == "sqrt":
            return tag("msqrt", self.argument())
        if name in _ACCENTS:
            return tag("mover", self.argument(), tag("mo", _ACCENTS[name], stretchy="false"), accent="true")
        if name in _NAMES:
            return self.words(name)
        if name in _IGNORED:
            return None
        raise _UnknownError

    def words(self, name: str) -> Markup:
        """Return upright words: text keeps its spaces, names are one sign."""
        start = self.place
        found = _TEXT.match(self.latex, start)
        if found is None:
            self.take()
            parts = self.row(until="}")
            return tag("mrow", *parts)
        self.place = found.end()
        inside = found.group(1)
        if name == "text":
            return tag("mtext", inside.replace(" ", "\u00a0"))
        return tag("mi", inside, mathvariant="normal" if len(inside) == 1 else None)


_LIMITS = frozenset({"max", "min", "sup", "inf", "argmin", "argmax"})
_UNDER = frozenset(tag("mi", name) for name in _LIMITS)
