"""The reference page of all configs, from their definitions: `reference()` is docs/configuration.md.

`python -m acklog.broker.configs.reference > docs/configuration.md` writes it anew; a test says when that is due.
"""

from __future__ import annotations

import sys

from acklog.broker.configs.broker_table import BROKER
from acklog.broker.configs.definitions import WHOLE, Definition, Kind, Table, text_of
from acklog.broker.configs.group_table import GROUP
from acklog.broker.configs.topic_table import TOPIC

INTRODUCTION = """\
# Configuration

<!-- Made by `python -m acklog.broker.configs.reference`: change the definitions, not this page. -->

Names, types and defaults are Apache Kafka's where Kafka has them; where acklog allows more, the range is wider. Names
that begin with `acklog.` are its own.

The server's configs come from defaults, a TOML file (`--config FILE`, else the one that `ACKLOG_CONFIG` names), the
environment, `--set NAME=VALUE`, and the options of `acklog serve` such as `--data`; each wins over those before it. In
the file a name may be quoted or not. In the environment it is written in capitals, with underscores for dots, after
`ACKLOG_` and without a leading `acklog.`: `num.partitions` is `ACKLOG_NUM_PARTITIONS`, `acklog.state.sync` is
`ACKLOG_STATE_SYNC`. A config that is wrong or does not exist is refused with its name, its value and what is allowed;
in the environment, where variables of other programs may begin with `ACKLOG_` too, a name that does not exist is
refused where it looks like a misspelling of one that does.

Configs of topics and groups, and those of the server marked *dynamic*, are changed while the server runs: with
`acklog topic config`, `acklog group config`, or any Kafka admin client (IncrementalAlterConfigs). What is set there
wins over what the server was started with and is kept over restarts.
"""

TOPICS = """\
## Topics

Where a topic does not set a config, the server's config named in the last column gives its value.
"""

KEPT = """\
### Accepted for other tools' sake

Tools set these routinely. They are checked, kept and shown, and change nothing.
"""

GROUPS = """\
## Groups

A group's configs can be set before the group exists and outlive it, as in Kafka. Where a group does not set a config,
the server's config named in the last column gives its value.
"""

SERVER = """\
## Server
"""


def reference() -> str:
    """The whole page, as Markdown."""
    return '\n'.join(
        (
            INTRODUCTION,
            TOPICS,
            *_rows(TOPIC, 'Server config', effective=True),
            '',
            KEPT,
            *_rows(TOPIC, 'Server config', effective=False),
            '',
            GROUPS,
            *_rows(GROUP, 'Server config', effective=True),
            '',
            SERVER,
            *_rows(BROKER, 'Dynamic', effective=True),
            '',
        )
    )


def _rows(table: Table, last: str, *, effective: bool) -> list[str]:
    rows = [f'| Name | Meaning | Type | Default | Allowed | {last} |', '|---|---|---|---|---|---|']
    for name in sorted(table):
        definition = table[name]
        if definition.effective is effective:
            rows.append(f'| {" | ".join(_cells(definition, table is BROKER))} |')
    return rows


def _cells(definition: Definition, of_broker: bool) -> tuple[str, ...]:
    last = 'yes' if definition.dynamic else ''
    if not of_broker:
        last = f'`{definition.broker}`' if definition.broker else ''
    default = text_of(definition.default)
    return (
        f'`{definition.name}`',
        definition.words.replace('|', '\\|'),
        definition.kind.name.lower(),
        f'`{default}`' if default else 'empty',
        _allowed(definition),
        last,
    )


def _allowed(definition: Definition) -> str:
    if definition.accepts:
        return definition.accepts
    if definition.choices:
        return ', '.join(f'`{choice}`' for choice in definition.choices)
    if definition.kind is Kind.BOOLEAN:
        return '`true`, `false`'
    if definition.kind in WHOLE or definition.kind is Kind.DOUBLE:
        low, high = definition.low, definition.high
        if low is not None and high is not None:
            return f'`{low}`' if low == high else f'`{low}` to `{high}`'
        return f'at least `{low}`' if low is not None else ''
    return ''


if __name__ == '__main__':
    sys.stdout.write(reference())
