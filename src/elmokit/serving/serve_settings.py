"""What is served, to whom, and how much of it at once."""

import ipaddress
from dataclasses import dataclass

from elmokit.base import bounded, check_fields
from elmokit.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Settings of the server.

    Attributes:
        models: Paths or names of bundled models, as for `elmokit.load`; "NAME=PATH" chooses the name that
            clients use. Otherwise that is the last part of the path.
        tasks: Folders of trained tasks, named in the same way.
        indexes: Folders of search indexes, named in the same way.
        precision, device: See `elmokit.load`.
        host, port: Where to listen.
        api_key: What clients have to send as `Authorization: Bearer KEY`.
        insecure: Whether other machines may connect without a key.
        open_page: Whether to open the page in a browser.
        workers: Number of processes, each with its own copy of the models.
        cors_origins: Web sites whose scripts may use the server, such as https://example.org.
        batch_tokens: About how many tokens go through the network at once.
        wait_ms: How long a request waits for others to share its batch.
        queue_tokens: How many tokens may wait; requests beyond are told to come back later (429).
        max_tokens: The most tokens of one request (413).
        max_texts: The most texts of one request (413).
        max_bytes: The largest body of a request (413).
        max_result_bytes: The largest answer (413).
        body_seconds: How long a client may take to send its body (408).
        grace_seconds: How long requests that are running may take to finish when the server is stopped.
    """

    models: tuple[str, ...] = ("en",)
    tasks: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    precision: str = "float32"
    device: str = "cpu"
    host: str = "127.0.0.1"
    port: int = bounded(8000, least=0, most=65535)
    api_key: str | None = None
    insecure: bool = False
    open_page: bool = False
    workers: int = bounded(1, least=1)
    cors_origins: tuple[str, ...] = ()
    batch_tokens: int = bounded(8192, least=1)
    wait_ms: float = bounded(0.3, least=0)
    queue_tokens: int = bounded(500_000, least=1)
    max_tokens: int = bounded(131_072, least=1)
    max_texts: int = bounded(2048, least=1)
    max_bytes: int = bounded(8 << 20, least=1)
    max_result_bytes: int = bounded(64 << 20, least=1)
    body_seconds: float = bounded(30.0, least=0)
    grace_seconds: float = bounded(30.0, least=0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.api_key is not None and not self.api_key.strip():
            raise ConfigError("the API key is empty; choose a long random one, or leave it out")
        if not (self.api_key or self.insecure or is_loopback(self.host)):
            raise ConfigError(
                f"host={self.host!r} lets other machines connect, and there is no key; set api_key, or "
                "insecure=True if something in front of the server checks who asks"
            )

    @property
    def address(self) -> str:
        """Return where the page is."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def long_tokens(self) -> int:
        """Return from how many tokens on a text is long: it would hold up a batch of short ones."""
        return max(1, self.batch_tokens // 8)


def is_loopback(host: str) -> bool:
    """Return whether a name or address is that of this machine, for itself only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def named(specs: tuple[str, ...]) -> dict[str, str]:
    """Return the paths by the names that clients use.

    Raises:
        ConfigError: Two have one name.

    Example:
        >>> named(("en", "models/news/", "old=models/elmo.zip"))
        {'en': 'en', 'news': 'models/news/', 'old': 'models/elmo.zip'}
    """
    paths: dict[str, str] = {}
    for spec in specs:
        name, separator, path = spec.partition("=")
        if not separator:
            path = spec
            name = spec.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
        if name in paths:
            raise ConfigError(
                f"{paths[name]} and {path} would both be called {name!r}; give one another name: NAME=PATH"
            )
        paths[name] = path
    return paths
