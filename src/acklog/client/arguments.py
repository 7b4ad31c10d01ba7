"""What a program hands over is looked at where it hands it over: where it is sent nobody could say who got it wrong."""

from __future__ import annotations

from collections.abc import Mapping

INT32 = (1 << 31) - 1
INT64 = (1 << 63) - 1


def check_text(what: str, value: object) -> None:
    """Raises TypeError unless it is a str."""
    if not isinstance(value, str):
        raise TypeError(f'{what} is a str, not {value!r}')


def check_whole(name: str, value: object, least: int, most: int = INT64) -> None:
    """Raises TypeError unless it is a whole number, ValueError unless it is `least` to `most`."""
    if not isinstance(value, int):
        raise TypeError(f'{name} is a whole number, not {value!r}')
    if value < least:
        raise ValueError(f'{name} has to be {least} or more, not {value}')
    if value > most:
        raise ValueError(f'{name} has to be {most} or less, not {value}')


def check_seconds(name: str, value: object, *, zero: bool = True) -> None:
    """Raises TypeError unless it is a number, ValueError unless it is 0 (or, without `zero`, more) or above."""
    if not isinstance(value, int | float):
        raise TypeError(f'{name} is a number of seconds, not {value!r}')
    if not (value >= 0 if zero else value > 0):  # NaN is neither
        raise ValueError(f'{name} has to be {"0 or more" if zero else "above 0"} seconds, not {value}')


def check_wait(value: object) -> None:
    """Raises TypeError unless it is a number, ValueError for NaN and without end."""
    if not isinstance(value, int | float):
        raise TypeError(f'wait is a number of seconds, not {value!r}')
    if not value < float('inf'):
        raise ValueError(f'wait has to be a number of seconds, not {value}')


def check_begin(begin: object) -> None:
    """Raises TypeError unless it is a str, ValueError unless a group can begin there. None goes."""
    if begin is None:
        return
    check_text('begin', begin)
    if begin not in ('earliest', 'latest') and not str(begin).startswith('by_duration:'):
        raise ValueError(f"begin is 'earliest' or 'latest', not {begin!r}")


def check_configs(configs: object, *, unset: bool) -> None:
    """Raises TypeError unless they are texts by their names; with `unset` None goes too."""
    if not isinstance(configs, Mapping):
        raise TypeError(f'configs are a mapping of names to values, not {configs!r}')
    for name, value in configs.items():
        check_text('the name of a config', name)
        if value is not None or not unset:
            check_text(f'the value of {name}', value)
