"""`elmokit serve`: models, tasks and indexes over HTTP, and the page."""

from typing import Any

import click

from elmokit.cli import options


@click.command()
@click.option(
    *("-m", "--model", "models"),
    multiple=True,
    default=("en",),
    metavar="[NAME=]MODEL",
    help="A model to serve; may be repeated.",
)
@click.option(
    *("--task", "tasks"),
    multiple=True,
    metavar="[NAME=]FOLDER",
    help="A folder that `elmokit train` wrote, or a bundled name; may be repeated.",
)
@click.option(
    *("--index", "indexes"),
    multiple=True,
    metavar="[NAME=]FOLDER",
    help="A folder that `elmokit index` wrote; may be repeated.",
)
@click.option("--host", default="127.0.0.1", help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Port to listen at.")
@click.option("--api-key", envvar="ELMOKIT_API_KEY", help="Key that clients send; or set ELMOKIT_API_KEY.")
@click.option("--insecure", is_flag=True, help="Let other machines connect without a key.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@options.choice_option("--precision", "float32 int8 bfloat16 auto", "Of the products.", "float32")
@options.device_option
@options.count_option("--workers", default=1, description="Processes, each with all models.")
@click.option("--cors-origin", "cors_origins", multiple=True, help="Web site that may use the server.")
@options.count_option("--batch-tokens", default=8192, description="Tokens that are computed at once.")
@click.option("--wait-ms", type=click.FloatRange(min=0), default=0.3, help="Wait so long for a fuller batch.")
@options.count_option("--queue-tokens", default=500_000, description="Tokens that may wait; then 429.")
@options.count_option("--max-tokens", default=131_072, description="Tokens of one request.")
@options.count_option("--max-texts", default=2048, description="Texts of one request.")
@options.count_option("--max-bytes", default=8 << 20, description="Bytes of one request.")
def serve(**settings: Any) -> None:
    """Serve models, tasks and indexes over HTTP, with a page.

    The page is at /, the documentation of the routes at /docs. SIGTERM and Ctrl-C finish running requests.
    """
    import elmokit

    elmokit.serve(**settings)
