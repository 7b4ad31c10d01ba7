"""`acklog completion`: the script that makes the shell complete commands and options."""

from __future__ import annotations

import click


@click.command(
    epilog='bash: acklog completion bash >> ~/.bashrc;  zsh: acklog completion zsh >> ~/.zshrc;  '
    'fish: acklog completion fish > ~/.config/fish/completions/acklog.fish',
)
@click.argument('shell', type=click.Choice(['bash', 'zsh', 'fish']))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script for completion in SHELL."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root()
    click.echo(kind(root.command, {}, root.info_name or 'acklog', '_ACKLOG_COMPLETE').source())
