"""Figures for people: tables in Markdown, bars and lines as SVGs, by hand."""

import re
from collections.abc import Mapping
from html import escape
from math import log10
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGE, PICTURE = DOCS / "reference" / "performance.md", DOCS / "img" / "performance.svg"
LINES = DOCS / "img" / "growing-conversation.svg"
COLOURS = {
    "nginx": "#9aa5b1",
    "bare Python": "#3f8f5f",
    "thoughtline": "#5b5bd6",
    "LiteLLM": "#e08e45",
    "Portkey": "#b8589a",
}
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#333}.bar{stroke:#c0392b;stroke-width:2;"
    "stroke-dasharray:3 2}.axis{stroke:#999}.back{fill:#fff}@media(prefers-color-scheme:dark)"
    "{text{fill:#ddd}.back{fill:#16181d}}"
)

Figures = Mapping[str, Mapping[str, float]]
"""By who, then by what."""
Curves = Mapping[str, Mapping[int, float]]
"""Seconds of processor time by who, then by the number of messages."""


def shown(figure: float | None, unit: str) -> str:
    """A figure as people write it."""
    if figure is None:
        return "–"
    return f"{figure:,.0f} {unit}" if figure >= 20 else f"{figure:.1f} {unit}"


def table(
    figures: Figures,
    ratios: Mapping[str, Mapping[str, float]],
    units: Mapping[str, str],
    bars: Mapping[str, float] | None = None,
) -> str:
    """One row for each thing that was measured, one column for each who was and for each ratio."""
    bar = [] if bars is None else ["bar"]
    heads = ["", *bar, *figures, *ratios]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for what, unit in units.items():
        if not any(what in made for made in figures.values()):
            continue
        cells = [shown(made.get(what), unit) for made in figures.values()]
        if bars is not None:
            cells.insert(0, shown(bars.get(what), unit))
        cells += [f"{column[what]:.2f}" if what in column else "–" for column in ratios.values()]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def points(curves: Curves) -> str:
    """Curves as a table: milliseconds by the number of messages."""
    lines = [f"{'messages':>9} " + " ".join(f"{who:>12}" for who in curves)] if curves else []
    for at in next(iter(curves.values()), {}):
        lines.append(f"{at:9} " + " ".join(f"{curve[at] * 1e3:12.2f}" for curve in curves.values()))
    return "\n".join(lines)


def bars_svg(figures: Figures, bars: Mapping[str, float], units: Mapping[str, str]) -> str:
    """Bars on a logarithmic scale, a group for each thing; a line where the bar is."""
    left, width, high, gap = 400, 420, 16, 26
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
    return _picture(
        f"0 0 1010 {y}",
        "Costs of the gateway beside nginx and others",
        "logarithmic; the dashed line is the bar",
        pieces,
    )


def _length(value: float, top: float, width: int) -> float:
    """From a thousandth of the largest (nothing) to the largest (all of the width)."""
    share = max(value, top / 1000) / top
    return max(2.0, width * (1 + log10(share) / 3))


def lines_svg(curves: Curves) -> str:
    """A line for each server: what a request costs over the length of its conversation."""
    left, top, width, height = 60, 40, 720, 300
    most = max(value for curve in curves.values() for value in curve.values())
    last = max(at for curve in curves.values() for at in curve)
    pieces = [
        f'<line class="axis" x1="{left}" x2="{left + width}" y1="{top + height}" y2="{top + height}"/>',
        f'<line class="axis" x1="{left}" x2="{left}" y1="{top}" y2="{top + height}"/>',
        f'<text x="{left + width}" y="{top + height + 34}" text-anchor="end">messages</text>',
    ]
    for at in range(0, last + 1, 50):
        x = left + width * at / last
        pieces.append(f'<text x="{x:.0f}" y="{top + height + 18}" text-anchor="middle">{at}</text>')
    for part in range(1, 5):
        y, value = top + height * (1 - part / 4), most * part / 4 * 1e3
        pieces.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{value:.1f}</text>')
    for who, curve in curves.items():
        spots = " ".join(
            f"{left + width * at / last:.1f},{top + height * (1 - value / most):.1f}"
            for at, value in curve.items()
        )
        colour = COLOURS.get(who, "#777")
        y = top + height * (1 - curve[max(curve)] / most)
        pieces.append(
            f'<polyline points="{spots}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{left + width + 8}" y="{y + 4:.0f}">{escape(who)}</text>'
        )
    return _picture(
        f"0 0 900 {top + height + 50}",
        "Cost of a request over the length of its conversation",
        "processor time per request of a growing conversation, ms",
        pieces,
    )


def _picture(box: str, label: str, title: str, pieces: list[str]) -> str:
    _, _, width, height = box.split()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" '
        f'aria-label="{label}"><style>{_STYLE}</style>'
        f'<rect class="back" width="{width}" height="{height}"/>'
        f'<text x="16" y="22">{title}</text>{"".join(pieces)}</svg>\n'
    )


def write(
    table: str,
    figures: Figures,
    bars: Mapping[str, float],
    units: Mapping[str, str],
    curves: Curves,
) -> None:
    """Put the table and both pictures into the documentation."""
    PICTURE.write_text(bars_svg(figures, bars, units))
    LINES.write_text(lines_svg(curves))
    picture = "![What a request costs over the length of its conversation](../img/growing-conversation.svg)"
    made = f"<!-- figures -->\n\n{table}\n\n{picture}\n\n<!-- end -->"
    text = re.sub(
        r"<!-- figures -->.*<!-- end -->", lambda _: made, PAGE.read_text(), flags=re.DOTALL
    )
    PAGE.write_text(text)
