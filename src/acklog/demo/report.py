"""What the main job's run says in the end: the figures for people, or as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from acklog.demo.scenario import Outcome

WIDTH = 34


def as_text(outcome: Outcome) -> str:
    """The figures, one per line, and the verdict."""
    verdict = outcome.verdict
    rows: list[tuple[str, str]] = [
        ('published, and confirmed', f'{verdict.published:,}'),
        ('signed off, and confirmed', f'{verdict.accepted:,}'),
        ('signed off, answer lost in a kill', f'{verdict.accept_unanswered:,}'),
        ('deliveries', f'{verdict.deliveries:,}'),
        ('  of these again, not signed off', f'{verdict.redelivered:,}'),
        ('handed back by a subscriber', f'{verdict.released:,}'),
        ('lost', f'{verdict.lost:,}'),
        ('delivered again after sign-off', f'{verdict.again_after_accept:,}'),
        ('stored twice', f'{verdict.stored_twice:,}'),
        ('damaged', f'{verdict.damaged:,}'),
        ('missing in the log, read again', f'{verdict.missing_in_log:,} of {outcome.read_back:,}'),
        ('left for a new member', f'{outcome.new_member_got:,}'),
        ('rates', f'{_rate(verdict.published, outcome.publish_s)} published, '
                  f'{_rate(verdict.accepted, outcome.work_s)} signed off'),
        ('server starts in, after kill -9', f'{outcome.start_s:.2f} s, {outcome.restart_s:.2f} s'),
        ('kill -9 of the server until', f'a publish is confirmed {outcome.confirmed_again_s:.2f} s, '
                                        f'a sign-off {outcome.accepted_again_s:.2f} s'),
        ('killed subscribers', f'{outcome.subscribers_killed}, which held {outcome.held_when_killed:,} records'),
        ('others had these after', _spread(outcome.takeovers)),
    ]  # fmt: skip
    lines = [f'  {name:<{WIDTH}} {value}' for name, value in rows]
    return '\n'.join([*lines, '', *_conclusion(outcome)])


def as_json(outcome: Outcome) -> str:
    """The same for programs."""
    fields: dict[str, Any] = asdict(outcome)
    times = sorted(fields.pop('takeovers'))
    fields['takeover_ms'] = {
        'count': len(times),
        'p50': round(statistics.median(times) * 1000, 3) if times else None,
        'max': round(times[-1] * 1000, 3) if times else None,
    }
    return json.dumps({'ok': outcome.ok, **fields}, indent=2)


def _conclusion(outcome: Outcome) -> list[str]:
    if outcome.ok:
        return ['Every record was signed off. None was lost, none came again after it was signed off.']
    lines = ['NOT as it must be:']
    lines += [f'  {kind}: records {records}' for kind, records in outcome.verdict.examples.items()]
    if not outcome.complete:
        lines.append('  not everything was signed off in time')
    if outcome.new_member_got:
        lines.append(f'  a new member of the group got {outcome.new_member_got} records')
    if outcome.tracebacks:
        lines.append(f'  the server printed {outcome.tracebacks} tracebacks')
    return lines


def _rate(count: int, seconds: float) -> str:
    return f'{count / seconds:,.0f}/s' if seconds > 0 else '-'


def _spread(times: Sequence[float]) -> str:
    if not times:
        return '-'
    return f'{statistics.median(times) * 1000:.0f} ms (median), {max(times) * 1000:.0f} ms (last)'
