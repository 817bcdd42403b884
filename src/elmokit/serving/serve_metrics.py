"""Statistics for Prometheus. None of them holds a text."""

import os
from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where worker processes share their numbers
_POWERS = tuple(4**power for power in range(9))


class ServeMetrics:
    """Requests, latencies, batches, the queue, and tokens."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "elmokit_requests", "Requests by route and status.", ("route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "elmokit_request_seconds",
            "From the head of a request to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._batch_tokens = Histogram(
            "elmokit_batch_tokens", "Tokens of a batch.", ("kind",), buckets=_POWERS, registry=registry
        )
        self._batch_items = Histogram(
            "elmokit_batch_items", "Texts of a batch.", ("kind",), buckets=_POWERS, registry=registry
        )
        self.tokens = Counter(
            "elmokit_tokens", "Tokens read, by model or task.", ("name",), registry=registry
        )
        self._queue = [
            Gauge(
                f"elmokit_queue_{what}",
                f"{what} that wait or are being computed.".capitalize(),
                registry=registry,
                multiprocess_mode="livesum",
            )
            for what in ("requests", "tokens")
        ]

    def queue(self, requests: int, tokens: int) -> None:
        """Say how much waits."""
        for gauge, value in zip(self._queue, (requests, tokens), strict=True):
            gauge.set(value)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batches(self, kind: str) -> Callable[[int, int], None]:
        """Return a function that counts a batch of one kind, given its items and tokens."""
        items, tokens = self._batch_items.labels(kind), self._batch_tokens.labels(kind)

        def observe(num_items: int, num_tokens: int) -> None:
            items.observe(num_items)
            tokens.observe(num_tokens)

        return observe

    def text(self) -> tuple[bytes, str]:
        """Return the statistics of all worker processes, and their content type."""
        registry = self._registry
        if _FOLDER in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST
