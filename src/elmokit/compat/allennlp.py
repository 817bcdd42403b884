"""AllenNLP's ELMo: `Elmo`, `batch_to_ids` and `ScalarMix` of 2.x, `ElmoEmbedder` of 0.9.

    from elmokit.compat.allennlp import Elmo, batch_to_ids      # was: from allennlp.modules.elmo import …

State dicts have AllenNLP's names both ways: what it saved loads here, and what is saved here loads there.

Shapes: B sentences, T tokens of the longest, C characters of a token, P projection, L layers.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, get_args

import h5py
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from elmokit.compat import padded
from elmokit.compat.allennlp_bilm import _ElmoBiLm, batch_to_ids
from elmokit.embed import Sentence, load
from elmokit.errors import ConfigError, DataError
from elmokit.model import normalise_layers
from elmokit.text import lists_of_tokens
from elmokit.vectors import open_hdf5

__all__ = ["Elmo", "ElmoEmbedder", "ScalarMix", "_ElmoBiLm", "batch_to_ids"]

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.float32]
OutputFormat = Literal["all", "top", "average"]


class ScalarMix(nn.Module):
    """γ · Σ_j softmax(w)_j · h_j, each of w a parameter of its own as in AllenNLP's state dicts.

    Args:
        mixture_size: how many tensors are mixed.
        do_layer_norm: normalise each of them first, by one mean and variance over the mask.
        initial_scalar_parameters: w; zeros when not given.
        trainable: whether w and γ are learnt.
    """

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        start = [0.0] * mixture_size if initial_scalar_parameters is None else initial_scalar_parameters
        if len(start) != mixture_size:
            raise ConfigError(f"expected {mixture_size} initial_scalar_parameters, found {len(start)}")
        self.mixture_size = mixture_size
        self.do_layer_norm = do_layer_norm
        self.scalar_parameters = nn.ParameterList(
            nn.Parameter(torch.tensor([float(weight)]), requires_grad=trainable) for weight in start
        )
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    def forward(self, tensors: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix tensors (…, D) of one shape; `mask` (…) is needed for the layer norm alone."""
        if len(tensors) != self.mixture_size:
            raise ConfigError(f"this mix was made for {self.mixture_size} tensors, found {len(tensors)}")
        layers = torch.stack(list(tensors))  # (L+1, …, D)
        if self.do_layer_norm:
            if mask is None:
                raise ConfigError("do_layer_norm needs the mask of the positions to count; pass it")
            layers = normalise_layers(layers, mask.bool(), "allennlp")
        weights = torch.softmax(torch.cat(list(self.scalar_parameters)), dim=0)  # (L+1,)
        mixed: Tensor = self.gamma * torch.tensordot(weights.to(layers), layers, dims=1)
        return mixed


class Elmo(nn.Module):
    """ELMo representations from character ids: the biLM once, and any number of learnt mixes of its layers.

    Args:
        options_file, weight_file: the model, as for `elmokit.load`; None with `module`.
        num_output_representations: how many mixes.
        requires_grad: whether the biLM is to be trained too.
        do_layer_norm: normalise each layer before it is mixed.
        dropout: of the representations, in training.
        vocab_to_cache: words whose token vectors are computed once; then pass `word_inputs`.
        keep_sentence_boundaries: leave `<S>` and `</S>` in the result.
        scalar_mix_parameters: w of every mix before the softmax; they are not learnt then.
        module: another biLM, with `num_layers`, `get_output_dim()` and a `forward` like `_ElmoBiLm`'s.
        stateful: carry the state over calls, as AllenNLP always does.

    Example:
        >>> elmo = Elmo("options.json", "weights.hdf5", 1, dropout=0.0)               # doctest: +SKIP
        >>> elmo(batch_to_ids([["The", "bank"]]))["elmo_representations"][0].shape    # doctest: +SKIP
        torch.Size([1, 2, 1024])
    """

    def __init__(
        self,
        options_file: str | Path | None,
        weight_file: str | Path | None,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: list[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        module: nn.Module | None = None,
        *,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        if (module is None) == (options_file is None):
            raise ConfigError("pass options_file and weight_file, or a module in their place")
        if module is not None:
            self._elmo_lstm: Any = module
        else:
            assert options_file is not None
            self._elmo_lstm = _ElmoBiLm(
                options_file, weight_file, requires_grad, vocab_to_cache, stateful=stateful
            )
        self._has_cached_vocab = vocab_to_cache is not None
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self._dropout = nn.Dropout(dropout)
        self._num_mixes = num_output_representations
        for number in range(num_output_representations):
            mix = ScalarMix(
                self._elmo_lstm.num_layers,
                do_layer_norm,
                scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
            )
            self.add_module(f"scalar_mix_{number}", mix)

    def get_output_dim(self) -> int:
        """2P."""
        dim: int = self._elmo_lstm.get_output_dim()
        return dim

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Represent a batch.

        Args:
            inputs: (…, T, C) character ids, from `batch_to_ids`; more axes than B are kept.
            word_inputs: (…, T) rows of the cached vocabulary, 0 for padding.

        Returns:
            `elmo_representations`, a list of (…, T, 2P), and `mask` (…, T), true where there is a token; T is
            two more with `keep_sentence_boundaries`.
        """
        if not isinstance(inputs, Tensor) or inputs.dim() < 3:
            found = f"shape {list(inputs.shape)}" if isinstance(inputs, Tensor) else type(inputs).__name__
            raise ConfigError(f"expected the character ids (B, T, C) of batch_to_ids, found {found}")
        if word_inputs is not None and not self._has_cached_vocab:
            logger.warning("word_inputs are not used, because the model was made without vocab_to_cache")
            word_inputs = None
        outer = inputs.shape[:-2]
        if word_inputs is not None:
            word_inputs = word_inputs.flatten(0, -2)
        output = self._elmo_lstm(inputs.flatten(0, -3), word_inputs)
        mask = output["mask"].bool()  # (B, T+2)
        inner = padded.up_to(mask.sum(dim=1) - 2, mask.shape[1] - 2)  # (B, T)
        representations = []
        for number in range(self._num_mixes):
            mixed = self.get_submodule(f"scalar_mix_{number}")(output["activations"], mask)  # (B, T+2, 2P)
            if not self._keep_sentence_boundaries:
                mixed = mixed[:, 1:-1] * inner.unsqueeze(-1)  # </S> of shorter sentences stood in it
            representations.append(self._dropout(mixed).unflatten(0, outer))
        mask = mask if self._keep_sentence_boundaries else inner
        return {"elmo_representations": representations, "mask": mask.unflatten(0, outer)}


class ElmoEmbedder:
    """AllenNLP 0.9's way to fixed vectors: all layers of tokenised sentences.

    Args:
        options_file, weight_file: the model, as for `elmokit.load`.
        cuda_device: number of the GPU; -1 for the CPU.
        stateful: carry the state over calls, as AllenNLP always does.
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
        self._embedder = load(options_file, weight_file, device=device, stateful=stateful)

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """The layers (B, L+1, T, 2P), zero where there is no token, and the mask (B, T)."""
        sentences = self._embed(batch)
        longest = max(map(len, sentences), default=0)
        embedder = self._embedder
        layers = torch.zeros(len(sentences), embedder.num_layers, longest, embedder.dim)
        for row, sentence in zip(layers, sentences, strict=True):
            row[:, : len(sentence)] = sentence.to_torch()
        lengths = torch.tensor([len(sentence) for sentence in sentences], dtype=torch.long)
        return layers.to(embedder.device), padded.up_to(lengths, longest).to(embedder.device)

    def embed_sentence(self, sentence: Sequence[str]) -> Floats:
        """The layers (L+1, T, 2P) of one sentence."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[Floats]:
        """The layers (L+1, T, 2P) of each sentence."""
        return [sentence.layers for sentence in self._embed(batch)]

    def embed_sentences(self, sentences: Iterable[Sequence[str]], batch_size: int = 64) -> Iterator[Floats]:
        """The layers (L+1, T, 2P) of each of any number of sentences, in order."""
        rest = iter(sentences)
        while batch := list(islice(rest, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | Path,
        output_format: OutputFormat = "all",
        batch_size: int = 64,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Embed a file of sentences, their tokens parted by white space, into HDF5.

        Args:
            input_file: open for reading; one sentence a line, no blank lines.
            output_file_path: dataset "0", "1", … of each sentence, and `sentence_to_index`.
            output_format: "all" layers (L+1, T, 2P), the "top" one or their "average" (T, 2P).
            batch_size: sentences to embed at once.
            forget_sentences: leave `sentence_to_index` out.
            use_sentence_keys: name the datasets by the sentences instead.

        Raises:
            DataError: there are blank lines, or with `use_sentence_keys` a sentence comes twice.
        """
        if output_format not in get_args(OutputFormat):
            raise ConfigError(f"output_format must be all, top or average, found {output_format!r}")
        sentences = [line.strip() for line in input_file]
        blank = [number for number, sentence in enumerate(sentences) if not sentence]
        if blank:
            raise DataError(f"lines {blank[:10]} (from 0) are blank; remove them")
        if use_sentence_keys and len(set(sentences)) < len(sentences):
            raise DataError(
                "a sentence comes twice and cannot name two datasets; pass use_sentence_keys=False"
            )
        embedded = self.embed_sentences((sentence.split() for sentence in sentences), batch_size)
        with open_hdf5(Path(output_file_path)) as file:
            for number, (sentence, layers) in enumerate(zip(sentences, embedded, strict=True)):
                chosen = {"all": layers, "top": layers[-1], "average": layers.mean(axis=0)}[output_format]
                file.add(sentence if use_sentence_keys else str(number), chosen)
            if not (forget_sentences or use_sentence_keys):
                index = {sentence: str(number) for number, sentence in enumerate(sentences)}
                file.add("sentence_to_index", [json.dumps(index)], dtype=h5py.string_dtype())

    def _embed(self, batch: Sequence[Sequence[str]]) -> list[Sentence]:
        return self._embedder.embed(lists_of_tokens(batch))
