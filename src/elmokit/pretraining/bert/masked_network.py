"""One step of training BERT: the loss of some rows and the gradients of all parameters.

The network is transformers' `BertForPreTraining` (without next-sentence prediction `BertForMaskedLM`). Three
things around it make it fast:

* The softmax over the vocabulary is computed at the places to predict alone, with its gradients in one go.
* Rows go through the network a few at a time, so that what lies between two layers stays in the cache.
* In bfloat16 the transformer layers compute in a copy of that type. The weights themselves, embeddings, heads
  and sums of gradients stay in float32.

Shapes: B rows, T pieces of a row, H numbers of a vector, m pieces to predict, n sequences with a label.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.errors import MissingExtra
from elmokit.kernels import Precision, seeded, softmax_gradients
from elmokit.pretraining.bert.bert_recipe import BertRecipe
from elmokit.pretraining.bert.packed_rows import RowBatch
from elmokit.pretraining.bert.word_pieces import PAD

_PIECES_AT_ONCE = 4096  # about 16 MB for the inner layer of `mini` in bfloat16
_DROPOUT_LATER = 0.1  # of the written model, for those who train it further


@dataclass(frozen=True, kw_only=True)
class MaskedScores:
    """How well a BERT predicts hidden pieces of a text.

    Attributes:
        text: Which.
        loss: Mean -log p of the pieces to predict.
        accuracy: Share of them that come first.
        next_sentence: Share of the sequences whose second part is recognised; None without that prediction.
        pieces: How many pieces were to be predicted.
    """

    text: str
    loss: float
    accuracy: float
    next_sentence: float | None
    pieces: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def new_bert(recipe: BertRecipe, num_pieces: int) -> Any:  # noqa: ANN401 (of transformers, untyped)
    """Draw a model at random, as transformers does.

    Raises:
        MissingExtra: transformers is not installed.
    """
    try:
        from transformers import BertConfig, BertForMaskedLM, BertForPreTraining
    except ImportError as error:
        raise MissingExtra("transformers", "transformers", "pretraining a BERT") from error
    config = BertConfig(
        vocab_size=num_pieces,
        hidden_size=recipe.model.hidden,
        num_hidden_layers=recipe.model.layers,
        num_attention_heads=recipe.model.heads,
        intermediate_size=recipe.model.inner,
        max_position_embeddings=recipe.length,
        hidden_dropout_prob=recipe.dropout,
        attention_probs_dropout_prob=recipe.dropout,
        pad_token_id=PAD,
        attn_implementation="sdpa",
    )
    with seeded(recipe.seed):
        return (BertForPreTraining if recipe.nsp else BertForMaskedLM)(config)


def set_later_dropout(config: Any) -> None:  # noqa: ANN401
    """Give the settings of a model that is written the dropout of those who train it further."""
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = _DROPOUT_LATER


@dataclass
class RowsResult:
    """Sums over all pieces to predict, and over all sequences with a label."""

    masked: float = 0.0
    next_sentence: float = 0.0
    found: int = 0
    recognised: int = 0


class MaskedNetwork:
    """A BERT in training; `step` adds to the gradients of its parameters.

    Args:
        model: Of transformers; its weights are float32.
        precision: Of the transformer layers and of the softmax.
    """

    def __init__(self, model: Any, precision: Precision = "float32") -> None:  # noqa: ANN401 (untyped)
        self.model, self._precision = model, precision
        self.nsp = hasattr(model.cls, "seq_relationship")
        self._layers: nn.Module = model.bert.encoder
        self._computing = deepcopy(self._layers).bfloat16() if precision == "bfloat16" else self._layers
        self._device = next(model.parameters()).device

    def step(self, batch: RowBatch, totals: Sequence[float], seeds: tuple[int, ...]) -> RowsResult:
        """Compute the loss of some rows and its gradients.

        Args:
            batch: The rows.
            totals: The pieces to predict and the sequences with a label of the whole step, by which the
                losses are divided.
            seeds: Of dropout.
        """
        self.model.train()
        self._take_weights()
        result = RowsResult()
        with seeded(*seeds):
            for part in self._parts(batch):
                hidden = self._hidden(part)
                leaf = hidden.detach().requires_grad_()
                self._heads(part, leaf, totals, result)
                torch.autograd.backward(hidden, leaf.grad)
                self._collect_gradients()
        return result

    @torch.no_grad()
    def measure(self, batch: RowBatch, name: str) -> MaskedScores:
        """Measure how well the model predicts some rows."""
        self.model.eval()
        self._take_weights()
        result = RowsResult()
        for part in self._parts(batch):
            hidden = self._hidden(part)
            logits = self.model.cls.predictions(hidden[self._tensor(part.masked)])  # (m, V)
            targets = self._tensor(part.targets)
            result.masked += float(functional.cross_entropy(logits, targets, reduction="sum"))
            result.found += int((logits.argmax(1) == targets).sum())
            if self.nsp and len(part.labels):
                right = self._relations(part, hidden).argmax(1) == self._tensor(part.labels)
                result.recognised += int(right.sum())
        labels, masked = len(batch.labels), len(batch.masked)
        share = result.recognised / labels if self.nsp and labels else None
        return MaskedScores(
            text=name,
            loss=result.masked / masked,
            accuracy=result.found / masked,
            next_sentence=share,
            pieces=masked,
        )

    def hidden(self, batch: RowBatch) -> Tensor:
        """Return the vectors of the top layer, (B · T, H)."""
        self._take_weights()
        return torch.cat([self._hidden(part) for part in self._parts(batch)])

    def _parts(self, batch: RowBatch) -> Iterator[RowBatch]:
        rows, length = batch.ids.shape
        each = max(1, _PIECES_AT_ONCE // length)
        for first in range(0, rows, each):
            yield batch.rows(first, first + each)

    def _tensor(self, part: Any) -> Tensor:  # noqa: ANN401 (an array)
        return torch.from_numpy(part).to(self._device)

    def _hidden(self, batch: RowBatch) -> Tensor:
        """Return (B · T, H) in float32."""
        sequences = self._tensor(batch.sequences)
        together = sequences[:, None, :, None] == sequences[:, None, None, :]  # (B, 1, T, T)
        x = self.model.bert.embeddings(
            self._tensor(batch.ids),
            token_type_ids=self._tensor(batch.parts),
            position_ids=self._tensor(batch.positions),
        )
        kind = torch.bfloat16 if self._precision == "bfloat16" else torch.float32
        out: Tensor = self._computing(x.to(kind), attention_mask=together)[0]  # (B, T, H)
        return out.float().flatten(0, 1)

    def _relations(self, batch: RowBatch, hidden: Tensor) -> Tensor:
        """Return the scores of "follows" and "does not", (n, 2)."""
        firsts = hidden[self._tensor(batch.firsts)][:, None]  # (n, 1, H): the pooler takes the first piece
        scores: Tensor = self.model.cls.seq_relationship(self.model.bert.pooler(firsts))
        return scores

    def _heads(self, batch: RowBatch, hidden: Tensor, totals: Sequence[float], result: RowsResult) -> None:
        """Add the losses to the result, and their gradients to `hidden.grad` and those of the heads."""
        head = self.model.cls.predictions
        x = head.transform(hidden[self._tensor(batch.masked)])  # (m, H)
        weight, bias = head.decoder.weight, head.decoder.bias
        found = softmax_gradients(
            x.detach(), weight.detach(), bias.detach(), self._tensor(batch.targets), None, self._precision
        )
        result.masked += found.loss
        torch.autograd.backward(x, found.hidden / totals[0])
        for parameter, grad in ((weight, found.weight), (bias, found.bias)):
            _add_gradient(parameter, grad.div_(totals[0]))
        if self.nsp and len(batch.labels):
            scores, labels = self._relations(batch, hidden), self._tensor(batch.labels)
            loss = functional.cross_entropy(scores, labels, reduction="sum")
            torch.autograd.backward(loss / totals[1])
            result.next_sentence += float(loss.detach())

    @torch.no_grad()
    def _take_weights(self) -> None:
        if self._computing is not self._layers:
            self._computing.train(self._layers.training)
            for copied, own in zip(self._computing.parameters(), self._layers.parameters(), strict=True):
                copied.copy_(own)

    def _collect_gradients(self) -> None:
        """Add the gradients of the copy to those of the layers, in float32."""
        if self._computing is not self._layers:
            for copied, own in zip(self._computing.parameters(), self._layers.parameters(), strict=True):
                if copied.grad is not None:
                    _add_gradient(own, copied.grad.float())
                    copied.grad = None


def _add_gradient(parameter: Tensor, grad: Tensor) -> None:
    if parameter.grad is None:
        parameter.grad = grad
    else:
        parameter.grad.add_(grad)
