"""The actors of `elmokit.integrations.ray`: each embeds shards and writes them."""

import logging
import re
import socket
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from elmokit.embed import origin
from elmokit.errors import ConfigError, ElmoError
from elmokit.integrations.cluster_input import InputShard
from elmokit.integrations.embed_batches import EmbedBatches, storable_text
from elmokit.vectors import TEXT_DIGEST, ShardFolder, write_shard

logger = logging.getLogger(__name__)

_ROWS_AT_ONCE = 200
_QUEUED = 2  # shards of an actor: while it embeds one, the next is there
_MOST_ATTEMPTS = 4  # of one shard, or of starting one actor
_PATIENCE = 60.0  # seconds without any actor, before a warning


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster, or start Ray on this machine, unless this process has done so already.

    Raises:
        ConfigError: There are two clusters to choose from, or there is none at the address.
    """
    if ray.is_initialized():
        if address is not None:
            raise ConfigError(
                f"address={address!r}, but this process is connected to a cluster already; leave it out"
            )
        yield
        return
    _check_there(address)
    how: dict[str, Any] = {"address": "local", "include_dashboard": False}
    if address not in (None, "local"):
        how = {"address": address}
    try:
        ray.init(**how, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"Ray cannot be reached at {address!r}: {str(error).splitlines()[0]}; start it with `ray start`, "
            "or pass its address as HOST:PORT"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_there(address: str | None) -> None:
    """Raise a ConfigError at once if nothing answers at HOST:PORT; Ray itself would try for minutes."""
    found = re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", address or "")
    if found is None:
        return
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"nothing answers at {address} ({error}); start Ray there (`ray start`), or correct it"
        ) from error


class ClusterActor:
    """Embeds shards and writes their files."""

    def __init__(self, embed: EmbedBatches) -> None:
        self._embed = embed

    def open(self) -> None:
        """Open the model."""
        self._embed.opened()

    def write(self, path: Path, shard: InputShard, settings: dict[str, Any]) -> dict[str, Any]:
        """Write a shard and return the counts, which its metadata has, too."""
        import pyarrow

        facts: Counter[str] = Counter(rows=0, bad_rows=0, tokens=0, truncated_tokens=0, unknown_tokens=0)
        tables = []
        # In pieces, because the rows take their memory again while they become a table.
        for first in range(0, len(shard.values), _ROWS_AT_ONCE):
            tables.append(self._table(shard, slice(first, first + _ROWS_AT_ONCE), facts))
        whole = {**facts, TEXT_DIGEST: shard.digest}
        of_model = origin(self._embed.opened()[0])
        write_shard(path, pyarrow.concat_tables(tables), {**settings, **of_model, **whole})
        return whole

    def _table(self, shard: InputShard, part: slice, facts: Counter[str]) -> Any:  # noqa: ANN401
        """Return the table of some rows of a shard, and add to its counts."""
        import pyarrow

        values, first = shard.values[part], shard.first + part.start
        embedded = self._embed.embed(values, first=first)
        texts = [
            storable_text(value) if row is None else row.text
            for row, value in zip(embedded.rows, values, strict=True)
        ]
        columns = {"line": pyarrow.array(range(first, first + len(texts)), pyarrow.int64())}
        if shard.ids is not None:
            ids = [None if one is None else storable_text(str(one)) for one in shard.ids[part]]
            columns["id"] = pyarrow.array(ids, pyarrow.string())
        columns["text"] = pyarrow.array(texts, pyarrow.string())
        facts.update(
            rows=len(texts),
            bad_rows=sum(row is None for row in embedded.rows),
            tokens=sum(len(row.tokens) for row in embedded.rows if row is not None),
            truncated_tokens=embedded.truncated_tokens,
            unknown_tokens=embedded.unknown_tokens,
        )
        table, made = pyarrow.table(columns), self._embed.columns(embedded)
        for field in made.schema:
            table = table.append_column(field, made[field.name])
        return table


class Pool:
    """Actors that write shards. One that dies is replaced, and its shards go to whichever is free.

    Args:
        embed: What they do; its threads are the CPUs of each.
        count: How many; by default as many as the cluster has CPUs for.
        folder: Where the shards go.
        settings: For the metadata of the shards.
    """

    def __init__(
        self, embed: EmbedBatches, count: int | None, folder: ShardFolder, settings: dict[str, Any]
    ) -> None:
        self._cpus = embed.threads or 1
        self._embed = replace(embed, threads=self._cpus)
        self._folder, self._settings = folder, settings
        self._actors: dict[int, Any] = {}
        self._free: deque[int] = deque()  # an actor stands here once for each shard that it may take
        self._pending: dict[
            Any, tuple[int, InputShard | None]
        ] = {}  # without a shard the actor is being opened
        self._again: deque[InputShard] = deque()
        self._attempts: Counter[int | None] = Counter()
        self._started = self.num_lost = 0
        available = int(ray.cluster_resources().get("CPU", 0) // self._cpus)
        for _ in range(count or max(1, available)):
            self._start()

    def results(self, shards: Iterator[InputShard]) -> Iterator[tuple[InputShard, dict[str, Any]]]:
        """Yield each shard when it has been written, and the counts.

        Raises:
            ElmoError: What an actor raised; or actors died again and again.
        """
        more = True
        while True:
            while self._free and (more or self._again):
                shard = self._again.popleft() if self._again else next(shards, None)
                if shard is None:
                    more = False
                    break
                number = self._free.popleft()
                path = self._folder.path(shard.number).resolve()
                call = self._actors[number].write.remote(path, shard, self._settings)
                self._pending[call] = number, shard
            if not (more or self._again or any(shard for _, shard in self._pending.values())):
                return
            yield from self._next_result()

    def stop(self) -> None:
        """End all actors."""
        for number in list(self._actors):
            self._end(number)

    def _next_result(self) -> Iterator[tuple[InputShard, dict[str, Any]]]:
        done, _ = ray.wait(list(self._pending), num_returns=1, timeout=_PATIENCE)
        if not done:
            if all(shard is None for _, shard in self._pending.values()):
                logger.warning(
                    "no actor has started for %.0f s: each needs %d CPUs, and the cluster has %s free",
                    *(_PATIENCE, self._cpus, ray.available_resources().get("CPU", 0)),
                )
            return
        number, shard = self._pending.pop(done[0])
        try:
            facts = ray.get(done[0])
        except RayTaskError as error:
            raise _cause(error) from None
        except RayError as error:  # the actor, or its machine, is gone
            self._lose(number, shard, error)
            return
        if number in self._actors:
            self._free.extend([number] * (_QUEUED if shard is None else 1))
        if shard is not None:
            yield shard, facts
        else:
            self._attempts[None] = 0

    def _start(self) -> None:
        # Without restarts: the pool replaces an actor, wherever there is room.
        make = ray.remote(num_cpus=self._cpus, max_restarts=0, max_task_retries=0)(ClusterActor)
        actor = make.remote(self._embed)
        self._started += 1
        self._actors[self._started] = actor
        self._pending[actor.open.remote()] = self._started, None

    def _lose(self, number: int, shard: InputShard | None, error: RayError) -> None:
        """Replace an actor, and give its shard to another one."""
        what = None if shard is None else shard.number
        self._attempts[what] += 1
        if self._attempts[what] >= _MOST_ATTEMPTS:
            where = "opening the model" if shard is None else f"rows {shard.first:,} and following"
            reason = str(error).strip().splitlines()[0]
            raise ElmoError(
                f"{_MOST_ATTEMPTS} actors died one after another ({where}): {reason} Perhaps memory ran out: "
                "use fewer actors, smaller shards or a smaller max_characters"
            ) from error
        if shard is not None:
            self._again.append(shard)
        if number in self._actors:
            self._end(number)
            self.num_lost += 1
            self._start()

    def _end(self, number: int) -> None:
        actor = self._actors.pop(number)
        self._free = deque(one for one in self._free if one != number)
        with suppress(RayError):
            ray.kill(actor)


def _cause(error: RayTaskError) -> Exception:
    """Return what was raised in the actor, if it is one of our errors; Ray's own says where it happened."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, ElmoError) else ElmoError(f"an actor failed: {error}")
