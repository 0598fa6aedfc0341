"""Figures for people: a table in Markdown, and bars as an SVG, by hand."""

import re
from collections.abc import Mapping
from html import escape
from math import log10
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent.parent / "docs"
PAGE, PICTURE = DOCS / "reference" / "performance.md", DOCS / "img" / "performance.svg"
COLOURS = {"nginx": "#9aa5b1", "thoughtline": "#5b5bd6", "LiteLLM": "#e08e45"}


class Measured(NamedTuple):
    """What was measured."""

    figures: Mapping[str, Mapping[str, float]]  # by who, then by what
    ratios: Mapping[str, float]  # ours to nginx's
    bars: Mapping[str, float]
    units: Mapping[str, str]


def shown(figure: float | None, unit: str) -> str:
    """A figure as people write it."""
    if figure is None:
        return "–"
    return f"{figure:,.0f} {unit}" if figure >= 20 else f"{figure:.1f} {unit}"


def table(measured: Measured) -> str:
    """One row for each thing that was measured, one column for each who was."""
    figures, ratios, bars, units = measured
    lines = [
        f"| | bar | {' | '.join(figures)} | we, × nginx |",
        f"|---|---|{'---|' * len(figures)}---|",
    ]
    for what, unit in units.items():
        cells = [shown(made.get(what), unit) for made in figures.values()]
        ratio = f"{ratios[what]:.1f}" if what in ratios else "–"
        bar = shown(bars.get(what), unit)
        lines.append(f"| {what} | {bar} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def svg(measured: Measured) -> str:
    """Bars on a logarithmic scale, a group for each thing; a line where the bar is."""
    figures, _, bars, units = measured
    left, width, high, gap = 330, 420, 16, 26
    pieces: list[str] = []
    y = 40
    for what, unit in units.items():
        known = [(who, made[what]) for who, made in figures.items() if what in made]
        top = max([value for _, value in known] + [bars.get(what, 0.0)])
        pieces.append(f'<text x="{left - 12}" y="{y + 12}" text-anchor="end">{escape(what)}</text>')
        begin = y
        for who, value in known:
            length = _length(value, top, width)
            pieces.append(
                f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{high}" rx="2" '
                f'fill="{COLOURS.get(who, "#777")}"><title>{who}</title></rect>'
                f'<text x="{left + length + 6:.0f}" y="{y + 12}">{who} {shown(value, unit)}</text>'
            )
            y += high + 4
        if what in bars:
            x = left + _length(bars[what], top, width)
            pieces.append(
                f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{begin - 4}" y2="{y}" class="bar"/>'
            )
        y += gap
    style = (
        "text{font:13px system-ui,sans-serif;fill:#333}.bar{stroke:#c0392b;stroke-width:2;"
        "stroke-dasharray:3 2}.back{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}"
        ".back{fill:#16181d}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 {y}" role="img" '
        'aria-label="Costs of the gateway beside nginx and LiteLLM">'
        f'<style>{style}</style><rect class="back" width="940" height="{y}"/>'
        '<text x="16" y="22">logarithmic; the dashed line is the bar</text>'
        f"{''.join(pieces)}</svg>\n"
    )


def _length(value: float, top: float, width: int) -> float:
    """From a thousandth of the largest (nothing) to the largest (all of the width)."""
    share = max(value, top / 1000) / top
    return max(2.0, width * (1 + log10(share) / 3))


def write(measured: Measured) -> None:
    """Put both into the documentation."""
    PICTURE.write_text(svg(measured))
    made = f"<!-- figures -->\n\n{table(measured)}\n\n<!-- end -->"
    text = re.sub(
        r"<!-- figures -->.*<!-- end -->", lambda _: made, PAGE.read_text(), flags=re.DOTALL
    )
    PAGE.write_text(text)
