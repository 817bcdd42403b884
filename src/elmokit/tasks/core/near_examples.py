"""Find the labelled places in training data that are like a given one, by what the head reads there.

A place (a span, or a whole text) has the mean of the vectors of its tokens behind the task's RNN. What all
places share, their mean, is subtracted before the cosine is taken; it is estimated on the first ones.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.base import group_until, progress_display
from elmokit.embed import batches_by_length
from elmokit.tasks.core.explanation import NearExample
from elmokit.tasks.core.protocol import Item
from elmokit.tasks.core.task_model import TaskModel, num_tokens
from elmokit.text import Run

# What are the labels of an example, and which tokens have them (None: all)?
LabelledPlaces: TypeAlias = Callable[[Any], list[tuple[str, Run | None]]]

_WINDOW = 32_768  # tokens of examples that are sorted by length together
_BATCH_TOKENS = 4096
_FOR_MEAN = 2000  # places


class _LabelledPlace(NamedTuple):
    """A labelled place of an example and its vector."""

    example: int
    label: str
    run: Run | None
    vector: Tensor


def nearest_examples(
    model: TaskModel[Any, Any, Any],
    labelled: LabelledPlaces,
    item: Item,
    places: Sequence[Run | None],
    examples: Sequence[Any],
    k: int,
    *,
    progress: bool,
) -> list[list[NearExample]]:
    """Return for each place of an item the k most similar labelled places of the examples."""
    if not places:
        return []
    model.eval()
    with progress_display(shown=progress) as begin, torch.no_grad():
        advance = begin("examples", len(examples))
        asked = torch.stack(_means(model([item]).vectors, places))  # (places, D)
        found = _labelled_places(model, labelled, examples, advance)
        first = list(islice(found, _FOR_MEAN))
        if not first:
            return [[] for _ in places]
        mean = torch.stack([place.vector for place in first]).mean(dim=0)
        asked = functional.normalize(asked - mean, dim=1)
        best: list[list[tuple[float, int, _LabelledPlace]]] = [[] for _ in places]
        for number, place in enumerate(chain(first, found)):
            cosines = (asked @ functional.normalize(place.vector - mean, dim=0)).tolist()
            for heap, cosine in zip(best, cosines, strict=True):
                entry = (cosine, -number, place)  # of equal ones the first
                heapq.heappush(heap, entry) if len(heap) < k else heapq.heappushpop(heap, entry)
    return [[_shown(examples, *entry) for entry in sorted(heap, reverse=True)] for heap in best]


def _labelled_places(
    model: TaskModel[Any, Any, Any],
    labelled: LabelledPlaces,
    examples: Sequence[Any],
    advance: Callable[..., None],
) -> Iterator[_LabelledPlace]:
    """Yield the labelled places of all examples, some thousand tokens at a time."""
    for window in group_until(range(len(examples)), lambda row: num_tokens(examples[row]) + 1, _WINDOW):
        sizes = [num_tokens(examples[row]) + 1 for row in window]
        for batch in batches_by_length(sizes, _BATCH_TOKENS):
            rows = [window[number] for number in batch]
            own = [examples[row] for row in rows]
            vectors = torch.split(model(own).vectors, [num_tokens(example) for example in own])  # (T, D) each
            for row, example, read in zip(rows, own, vectors, strict=True):
                places = labelled(example) if len(read) else []
                means = _means(read, [run for _, run in places])
                for (label, run), mean in zip(places, means, strict=True):
                    yield _LabelledPlace(row, label, run, mean)
        advance(len(window))


def _means(vectors: Tensor, runs: Sequence[Run | None]) -> list[Tensor]:
    """Return the mean vector of each run of tokens, or of all tokens, (D,) each."""
    return [vectors[slice(None) if run is None else slice(*run)].mean(dim=0) for run in runs]


def _shown(examples: Sequence[Any], cosine: float, _: int, place: _LabelledPlace) -> NearExample:
    example = examples[place.example]
    words = [list(text) for text in example.texts]
    if place.run is not None:
        tokens = [(text, number) for text, own in enumerate(words) for number in range(len(own))]
        (first, start), (last, end) = tokens[place.run[0]], tokens[place.run[1] - 1]
        words[first][start] = f"[{words[first][start]}"
        words[last][end] += "]"
    text = " | ".join(" ".join(own) for own in words)
    return NearExample(place.label, cosine, text, example.where)
