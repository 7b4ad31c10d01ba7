"""Where the server's configs come from, each winning over those before it:

    defaults < TOML file < environment < --set NAME=VALUE < options such as --data

The names are the same everywhere (docs/configuration.md). In the environment a name is written in capitals, dots as
underscores, after `ACKLOG_`, without a leading `acklog.`: `ACKLOG_NUM_PARTITIONS`, `ACKLOG_STATE_SYNC`. In the file it
may be quoted or not: `num.partitions = 4` and `"num.partitions" = 4` are the same. Whatever is wrong is refused with
name, value and what is allowed; a name that does not exist with those that are spelled nearly so.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from acklog.broker.configs import BROKER, Settings, UnknownConfig, text_of
from acklog.errors import ConfigError

__all__ = ['Settings', 'environment_name', 'load_settings']

PREFIX = 'ACKLOG_'
FILE = PREFIX + 'CONFIG'  # names the file where --config does not


def load_settings(
    *,
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    assignments: Sequence[str] = (),
    options: Mapping[str, str | None] | None = None,
) -> Settings:
    """All configs the server starts with.

    `file`: TOML, by default the one that ACKLOG_CONFIG names, if any; `environment`: usually `os.environ`;
    `assignments`: NAME=VALUE each; `options`: by name, None where an option was not given. Raises ConfigError.
    """
    environment = environment or {}
    file = file or environment.get(FILE)
    texts = {**(_from_file(file) if file else {}), **_from_environment(environment), **_from_assignments(assignments)}
    texts |= {name: text for name, text in (options or {}).items() if text is not None}
    return Settings(texts)


def environment_name(name: str) -> str:
    """How the environment writes a config's name."""
    return PREFIX + name.removeprefix('acklog.').replace('.', '_').upper()


def _from_file(file: str | Path) -> dict[str, str]:
    try:
        content = tomllib.loads(Path(file).read_text(encoding='utf-8'))
    except OSError as error:
        raise ConfigError('config', str(file), f'must be a file that can be read: {error.strerror}') from None
    except ValueError as error:  # no TOML, or not UTF-8
        allowed = f'must be a TOML file; quote a name that is the beginning of another one: {error}'
        raise ConfigError('config', str(file), allowed) from None
    texts: dict[str, str] = {}
    for name, value in _flat(content, ''):
        text = _text(name, value)
        BROKER.definition(name, text)
        texts[name] = text
    return texts


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f'{prefix}{key}.')
        else:
            yield prefix + key, value


def _text(name: str, value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = tuple(value)
    if not isinstance(value, bool | int | float | str | tuple):
        raise ConfigError(name, value, 'must be text, a number, true or false, or a list of texts')
    return text_of(value) or ''


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Those that are configs. Other programs' variables may begin like ours: one that is nearly the name of a config is
    taken for a misspelling and refused, any other is left alone."""
    known = {environment_name(name): name for name in BROKER}
    texts: dict[str, str] = {}
    for variable, text in environment.items():
        if variable in known:
            texts[known[variable]] = text
        elif variable.startswith(PREFIX) and variable != FILE:
            near = difflib.get_close_matches(variable, known, n=3, cutoff=0.85)
            if near:
                raise UnknownConfig(variable, text, f'unknown; did you mean {" or ".join(near)}?')
    return texts


def _from_assignments(assignments: Sequence[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition('=')
        if not equals:
            raise ConfigError('--set', assignment, 'must be NAME=VALUE')
        texts[name.strip()] = text.strip()
    return texts
