"""Asking before something is destroyed."""

from __future__ import annotations

import click

from acklog.cli.lines import asks_a_person
from acklog.errors import AcklogError


class Declined(AcklogError):
    """The person said no."""


def confirm(question: str, yes: bool) -> None:
    """Go on if the person agrees or `yes` was given; else end. Where nobody can be asked, say that --yes is needed."""
    if yes:
        return
    if not asks_a_person():
        raise click.UsageError(f'{question} Nobody can be asked here: say --yes.')
    if not click.confirm(question, err=True):
        raise Declined('nothing was changed')
