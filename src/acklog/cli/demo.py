"""`acklog demo`: the main job with stock clients, in a process of its own, with kill -9."""

from __future__ import annotations

import click


@click.command(add_help_option=False, context_settings={'ignore_unknown_options': True})
@click.argument('arguments', nargs=-1, type=click.UNPROCESSED, metavar='[OPTIONS]')
def demo(arguments: tuple[str, ...]) -> int:
    """Show the main job: kill subscribers and the server, lose nothing."""
    from acklog.demo.run import main

    return main(arguments)
