"""What a server serves: models, tasks and indexes, each loaded once, and the threads that compute.

Three threads, so that nothing slow holds up the rest: one for batches of short texts, which uses all cores;
one for long texts; one for tasks and what is no batch (gaps, generation, search, uses of a word). The
operating system divides the cores among them.
"""

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar

import torch

from elmokit.embed import Embedder, PreparedText, Sentence, Text
from elmokit.errors import ConfigError
from elmokit.formats import load_model
from elmokit.language_model import LanguageModel, SentenceScore
from elmokit.search import Index
from elmokit.serving.batching import Backlog, Batcher
from elmokit.serving.problems import Problem, refuse_more
from elmokit.serving.serve_metrics import ServeMetrics
from elmokit.serving.serve_settings import ServeSettings, named
from elmokit.tasks import TaskModel, load_task

Item = TypeVar("Item")
Result = TypeVar("Result")
Finish = Callable[[Sentence], Any]

_CHARACTERS_AT_ONCE = 50_000  # tokenised on the event loop, in a hundredth of a second


class Threads:
    """The threads that compute; torch's threads are for the batches."""

    def __init__(self) -> None:
        everything = torch.get_num_threads()
        self.long = ThreadPoolExecutor(1, "long", torch.set_num_threads, (1,))
        self.single = ThreadPoolExecutor(1, "single", torch.set_num_threads, (1,))
        for thread in (self.long, self.single):
            thread.submit(int).result()
        # Last: setting it in a thread also sets it for threads that start later.
        self.batches = ThreadPoolExecutor(1, "batches", torch.set_num_threads, (everything,))
        self.batches.submit(int).result()

    def close(self) -> None:
        """Wait for what is running."""
        for thread in (self.batches, self.long, self.single):
            thread.shutdown()


class Lane:
    """A way to compute batches of short items on one thread, and long ones on another.

    Args:
        short, long: Compute a batch of items; they may run at the same time.
        served: Whose threads, limits and statistics to use.
        kind: What statistics call it.
    """

    def __init__(
        self, short: Callable[[Any], Any], long: Callable[[Any], Any], served: "Served", kind: str
    ) -> None:
        settings, threads = served.settings, served.threads

        def batcher(run: Callable[[Any], Any], thread: Executor, wait: float) -> Batcher[Any, Any]:
            observe = served.metrics.batches(kind)
            budget = settings.batch_tokens
            return Batcher(
                run, thread=thread, backlog=served.backlog, budget=budget, wait=wait, observe=observe
            )

        self._short = batcher(short, threads.batches, settings.wait_ms / 1000)
        self._long = batcher(long, threads.long, 0.0)
        self._long_tokens = settings.long_tokens

    async def submit(self, items: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """Return the results of items, in order."""
        is_long = [size > self._long_tokens for size in sizes]
        if not any(is_long):
            return await self._short.submit(items, sizes)
        parts = []
        for batcher, wanted in ((self._short, False), (self._long, True)):
            chosen = [number for number, long in enumerate(is_long) if long == wanted]
            found = batcher.submit([items[n] for n in chosen], [sizes[n] for n in chosen])
            parts.append((chosen, asyncio.ensure_future(found)))
        try:
            await asyncio.gather(*(task for _, task in parts))
        finally:
            for _, task in parts:
                task.cancel()
        results = {n: one for chosen, task in parts for n, one in zip(chosen, task.result(), strict=True)}
        return [results[number] for number in range(len(items))]


class ServedModel:
    """A model that is served: its vectors, and its language model if it has one."""

    def __init__(self, name: str, path: str, served: "Served") -> None:
        self.name, self._served = name, served
        bundle = load_model(path)
        settings = served.settings
        self.embedder = Embedder(
            bundle,
            precision=settings.precision,
            device=settings.device,
            batch_tokens=settings.batch_tokens,
        )
        # This also lays the weights out: the first client need not wait for that.
        self._for_long, self.for_single = self.embedder.twin(), self.embedder.twin()
        self._embed = Lane(_embed_with(self.embedder), _embed_with(self._for_long), served, "embed")
        self.language_model: LanguageModel | None = None
        if bundle.softmax is not None and bundle.vocabulary is not None:
            self.language_model = LanguageModel.of_bundle(bundle, precision=settings.precision)
            score = _score_with(self.language_model)
            self._score = Lane(score, score, served, "score")

    @property
    def require_lm(self) -> LanguageModel:
        """Return the language model.

        Raises:
            Problem: There is none.
        """
        if self.language_model is None:
            raise Problem(
                400, f"model {self.name!r} has no softmax, so it is no language model", param="model"
            )
        return self.language_model

    async def prepare(self, texts: Sequence[Text]) -> list[PreparedText]:
        """Tokenise texts.

        Raises:
            Problem: They are too many or too long.
        """
        settings = self._served.settings
        refuse_more("texts", len(texts), settings.max_texts)
        if sum(map(len, texts)) <= _CHARACTERS_AT_ONCE:
            prepared = [self.embedder.prepare(text) for text in texts]
        else:
            twin = self._for_long
            loop = asyncio.get_running_loop()
            prepared = await loop.run_in_executor(
                self._served.threads.long, lambda: [twin.prepare(text) for text in texts]
            )
        tokens = sum(map(len, prepared)) - 2 * len(prepared)
        refuse_more("tokens", tokens, settings.max_tokens)
        self._served.metrics.tokens.labels(self.name).inc(tokens)
        return prepared

    async def embed(self, prepared: Sequence[PreparedText], finish: Finish) -> list[Any]:
        """Return what `finish` makes of each sentence; its arrays are valid only inside that call."""
        return await self._embed.submit([(one, finish) for one in prepared], list(map(len, prepared)))

    async def score(self, prepared: Sequence[PreparedText]) -> list[SentenceScore]:
        """Return the scores of sentences."""
        return await self._score.submit([one.words for one in prepared], list(map(len, prepared)))


def _embed_with(embedder: Embedder) -> Callable[[list[tuple[PreparedText, Finish]]], list[Any]]:
    def run(batch: list[tuple[PreparedText, Finish]]) -> list[Any]:
        sentences = embedder.embed_prepared([prepared for prepared, _ in batch], copy=False)
        return [finish(sentence) for (_, finish), sentence in zip(batch, sentences, strict=True)]

    return run


def _score_with(model: LanguageModel) -> Callable[[list[list[str]]], list[SentenceScore]]:
    return lambda batch: list(model.stream(batch))


class ServedTask:
    """A trained task that is served."""

    def __init__(self, name: str, path: str, served: "Served") -> None:
        self.name, self._served = name, served
        self.model: TaskModel[Any, Any, Any] = load_task(path, device=served.settings.device)
        self.kind = self.model.task.name
        # A task model serves one thread.
        self._batcher: Batcher[Any, Any] = Batcher(
            self.model.predict_read,
            thread=served.threads.single,
            backlog=served.backlog,
            budget=served.settings.batch_tokens,
            wait=served.settings.wait_ms / 1000,
            observe=served.metrics.batches("predict"),
        )

    async def predict(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the prediction for each input, in order.

        Raises:
            Problem: They are too many or too long.
        """
        settings = self._served.settings
        refuse_more("texts", len(inputs), settings.max_texts)
        loop = asyncio.get_running_loop()
        items = await loop.run_in_executor(
            self._served.threads.single, lambda: [self.model.read(given) for given in inputs]
        )
        sizes = [1 + sum(map(len, item.texts)) for item in items]
        refuse_more("tokens", sum(sizes), settings.max_tokens)
        self._served.metrics.tokens.labels(self.name).inc(sum(sizes))
        return await self._batcher.submit(items, sizes)


class Served:
    """Everything that a server serves.

    Args:
        settings: What to load, and the limits.

    Raises:
        ElmoError: Something cannot be loaded.
    """

    def __init__(self, settings: ServeSettings) -> None:
        if not (settings.models or settings.tasks or settings.indexes):
            raise ConfigError("there is nothing to serve; name a model, a task or an index")
        self.settings = settings
        self.threads = Threads()
        self.metrics = ServeMetrics()
        self.backlog = Backlog(settings.queue_tokens, self.metrics.queue)
        self.models = {name: ServedModel(name, path, self) for name, path in named(settings.models).items()}
        self.tasks = {name: ServedTask(name, path, self) for name, path in named(settings.tasks).items()}
        self.indexes = {name: self._open_index(path) for name, path in named(settings.indexes).items()}
        self._single: Batcher[Callable[[], Any], Any] = Batcher(
            lambda calls: [call() for call in calls],
            thread=self.threads.single,
            backlog=self.backlog,
            budget=1,  # one at a time
            observe=self.metrics.batches("single"),
        )
        gc.collect()
        gc.freeze()  # models live as long as the process: do not walk through them again and again
        # The computing thread asks for the interpreter after each call of the kernel, while the event loop
        # writes answers: by default it waits up to 5 ms.
        sys.setswitchinterval(0.0005)

    def model(self, name: str) -> ServedModel:
        """Return a model by its name.

        Raises:
            Problem: There is none of that name.
        """
        with _known(name, self.models, "model"):
            return self.models[name]

    def task(self, name: str) -> ServedTask:
        """Return a task by its name.

        Raises:
            Problem: There is none of that name.
        """
        with _known(name, self.tasks, "task"):
            return self.tasks[name]

    def index(self, name: str) -> Index:
        """Return an index by its name; it serves the thread of `call`.

        Raises:
            Problem: There is none of that name.
        """
        with _known(name, self.indexes, "index"):
            return self.indexes[name]

    def _open_index(self, path: str) -> Index:
        """Open an index, with a served model if it was built with that one."""
        for model in self.models.values():
            index = Index.open(path, model=model.for_single)
            with contextlib.suppress(ConfigError):
                assert index.embedder
                return index
        index = Index.open(path)
        assert index.embedder  # is loaded now
        return index

    async def call(self, function: Callable[[], Result], *, tokens: int) -> Result:
        """Run a function that is no batch on the thread for such work; it costs about so many tokens."""
        (result,) = await self._single.submit([function], [max(1, tokens)])
        return result  # type: ignore[no-any-return]  # what the function returned


@contextlib.contextmanager
def _known(name: str, things: dict[str, Any], kind: str) -> Iterator[None]:
    try:
        yield
    except KeyError:
        known = f"there is {', '.join(sorted(things))}" if things else "none is served"
        raise Problem(
            404, f"there is no {kind} {name[:60]!r}; {known}", param=kind, code=f"{kind}_not_found"
        ) from None
