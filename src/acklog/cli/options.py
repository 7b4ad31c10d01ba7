"""Options that many commands have, and those of them that belong together as one argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import click

F = TypeVar('F', bound=Callable[..., Any])
Option = Callable[[Any], Any]  # what `click.option` and `click.argument` return


class Number(click.FloatRange):
    """A number in a range, which NaN is in none of."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f'{value!r} is not a number', param, ctx)
        return number


json_option = click.option('--json', 'as_json', is_flag=True, help='One JSON document.')
dry_run_option = click.option('-n', '--dry-run', is_flag=True, help='Change nothing; say what would come of it.')
yes_option = click.option('-y', '--yes', is_flag=True, help='Do not ask.')
limit_option = click.option(
    '--limit',
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar='N',
    help='How many to list at most.',
)
timeout_option = click.option(
    '--timeout',
    type=Number(min=0.1, max=3600),
    default=10.0,
    show_default=True,
    metavar='SECONDS',
    help='How long to wait for an answer.',
)


def gathered(
    argument: str,
    make: Callable[..., Any],
    *options: Option,
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Callable[[F], F]:
    """Give a command these options, and in place of their values one argument, which `make` makes of them. It runs
    inside of `within`."""

    def bare() -> None: ...

    for option in reversed(options):
        option(bare)
    params: list[click.Parameter] = bare.__click_params__  # type: ignore[attr-defined]
    names = [str(param.name) for param in params]

    def give(command: F) -> F:
        def wrapped(**values: Any) -> Any:
            own = {name: values.pop(name) for name in names}
            with within():
                return command(**values, **{argument: make(**own)})

        wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
        wrapped.__click_params__ = [*getattr(command, '__click_params__', []), *params]  # type: ignore[attr-defined]
        return wrapped  # type: ignore[return-value]

    return give


def own_or_root(name: str, own: str) -> str:
    """The command's own option of that name, or the one that was written before the command's name."""
    context = click.get_current_context()
    before = context.find_root().params.get(name)
    given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    return own if given or not before else str(before)
