"""AllenNLP 0.9's `ElmoEmbedder`. Shapes: B sentences, T tokens of the longest, P projection, L layers."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Literal

import h5py
import numpy as np
import torch
from torch import Tensor

from elmokit.base import check_option, group_until, open_hdf5, output_file
from elmokit.compat.padded_bilm import stack_padded
from elmokit.embed import Floats, Sentence, load_elmo
from elmokit.errors import ConfigError, DataError
from elmokit.model import first_positions
from elmokit.text import lists_of_tokens


class ElmoEmbedder:
    """The layers of tokenised sentences, as in AllenNLP 0.9.

    With `stateful=True` the state is carried from call to call, as AllenNLP always does.
    """

    def __init__(
        self,
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        cuda_device: int = -1,
        *,
        stateful: bool = False,
    ) -> None:
        if options_file is None:
            raise ConfigError(
                "elmokit downloads no default model; pass options_file and weight_file of one you have"
            )
        self.cuda_device = cuda_device
        device = "cpu" if cuda_device < 0 else f"cuda:{cuda_device}"
        self._embedder = load_elmo(options_file, weight_file, device=device, stateful=stateful)

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Return the layers (B, L+1, T, 2P), zero where there is no token, and the mask (B, T)."""
        rows = [layers.swapaxes(0, 1) for layers in self.embed_batch(batch)]  # (T, L+1, 2P) each
        embedder = self._embedder
        padded = stack_padded(rows, (embedder.num_layers, embedder.dim), np.float32)  # (B, T, L+1, 2P)
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
        layers, mask = torch.from_numpy(padded).transpose(1, 2), first_positions(lengths, padded.shape[1])
        return layers.to(embedder.device), mask.to(embedder.device)

    def embed_sentence(self, sentence: Sequence[str]) -> Floats:
        """Return the layers (L+1, T, 2P) of one sentence."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[Floats]:
        """Return the layers (L+1, T, 2P) of each sentence."""
        return [sentence.layers for sentence in self._embed(batch)]

    def embed_sentences(self, sentences: Iterable[Sequence[str]], batch_size: int = 64) -> Iterator[Floats]:
        """Yield the layers (L+1, T, 2P) of any number of sentences, in order."""
        for batch in group_until(sentences, lambda _: 1, batch_size):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | Path,
        output_format: Literal["all", "top", "average"] = "all",
        batch_size: int = 64,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Embed a file of sentences, their tokens separated by white space, into HDF5.

        The datasets are named "0", "1", …, or by the sentences with `use_sentence_keys`. The numbers are in
        `sentence_to_index` unless `forget_sentences` is true. `output_format` selects "all" layers
        (L+1, T, 2P), the "top" one or their "average" (T, 2P).

        Raises:
            DataError: there are blank lines, or a sentence occurs twice with `use_sentence_keys`.
        """
        check_option("output_format", output_format, ("all", "top", "average"))
        sentences = [line.strip() for line in input_file]
        blank = [number for number, sentence in enumerate(sentences) if not sentence]
        if blank:
            raise DataError(f"lines {blank[:10]} (from 0) are blank; remove them")
        if use_sentence_keys and len(set(sentences)) < len(sentences):
            raise DataError(
                "a sentence occurs twice and cannot name two datasets; pass use_sentence_keys=False"
            )
        numbered = enumerate(sentences)
        with output_file(Path(output_file_path)) as draft, open_hdf5(draft) as add:
            for batch in group_until(numbered, lambda _: 1, batch_size):
                embedded = self._embed([sentence.split() for _, sentence in batch])
                for (number, sentence), one in zip(batch, embedded, strict=True):
                    add(sentence if use_sentence_keys else str(number), one.select(output_format))
            if not (forget_sentences or use_sentence_keys):
                index = {sentence: str(number) for number, sentence in enumerate(sentences)}
                add("sentence_to_index", [json.dumps(index)], dtype=h5py.string_dtype())

    def _embed(self, batch: Sequence[Sequence[str]]) -> list[Sentence]:
        return self._embedder.embed(lists_of_tokens(batch))
