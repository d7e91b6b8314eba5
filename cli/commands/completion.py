"""`ballast completion`: what a shell reads so that it completes commands and options."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_BALLAST_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Write the script of a shell: eval "$(ballast completion bash)"."""
    kind = get_completion_class(shell)
    if kind is not None:
        root = context.find_root()
        click.echo(kind(root.command, {}, root.info_name or "ballast", _VARIABLE).source())
