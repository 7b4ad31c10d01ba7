"""Medians of all rounds, ratios and goals, as one table. Kafka has its columns where it was measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from figures import Figure

Rounds = Mapping[str, Mapping[str, Sequence[float]]]  # server -> figure -> one value per round


def render(figures: Sequence[Figure], rounds: Rounds) -> str:
    """The table as text, one row for each of `figures` that was measured."""
    medians = {
        server: {name: statistics.median(values) for name, values in measured.items() if values}
        for server, measured in rounds.items()
    }
    ours, theirs = medians.get('acklog', {}), medians.get('Kafka', {})
    rows = [('', 'unit', 'acklog', 'Kafka', 'ratio', 'goal', '')]
    for figure in figures:
        if figure.name in ours or figure.name in theirs:
            rows.append(_row(figure, ours, theirs))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    shown = [column for column in range(2, 6) if theirs or column not in (3, 4)]
    lines = []
    for row in rows:
        cells = [f'{row[0]:<{widths[0]}}', f'{row[1]:<{widths[1]}}']
        cells += [f'{row[column]:>{widths[column]}}' for column in shown]
        lines.append('  '.join([*cells, row[6]]).rstrip())
    return '\n'.join(lines)


def _row(figure: Figure, ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[str, ...]:
    mine, kafka = ours.get(figure.name), theirs.get(figure.name)
    ratio = _ratio(figure, mine, kafka)
    goal, reached = _goal(figure, mine, ratio, ours.get('fdatasync_p50'))
    mark = '' if reached is None else 'ok' if reached else 'MISSED'
    return (figure.label, figure.unit, _number(mine), _number(kafka), f'{ratio:.2f}x' if ratio else '-', goal, mark)


def _ratio(figure: Figure, mine: float | None, kafka: float | None) -> float | None:
    """How many times better acklog is."""
    if figure.name.startswith('fdatasync') or not mine or not kafka:
        return None
    return mine / kafka if figure.better == 'more' else kafka / mine


def _goal(figure: Figure, mine: float | None, ratio: float | None, disk: float | None) -> tuple[str, bool | None]:
    if figure.times is not None:
        return f'{figure.times:g}x', None if ratio is None else ratio >= figure.times
    if figure.at_most is not None:
        return f'<= {figure.at_most:g}', None if mine is None else mine <= figure.at_most
    if figure.at_least is not None:
        return f'>= {figure.at_least:,g}', None if mine is None else mine >= figure.at_least
    if figure.above_fdatasync is not None and disk is not None:
        bound = disk + figure.above_fdatasync
        return f'<= {bound:.0f}', None if mine is None else mine <= bound
    return '', None


def _number(value: float | None) -> str:
    if value is None:
        return '-'
    if value >= 1000 or value == 0:
        return f'{value:,.0f}'
    return f'{value:.1f}' if value >= 10 else f'{value:.3f}'
