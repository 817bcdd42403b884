"""A linear-chain conditional random field over packed batches (Lafferty et al. 2001).

    score(y) = Σ_t emission_t(y_t) + Σ_t transition(y_{t-1}, y_t),   y_0 = y_{T+1} = the sentence's boundary
    log p(y) = score(y) - log Z,   Z = Σ_y exp score(y)

Shapes: S tokens of a batch laid out one sentence after another, b sentences running at a step, K tags.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from elmokit.kernels import Packing

_FORBIDDEN = -1e4  # finite, so that no gradient is infinity times zero
_NEVER = -1e9
_SAFE = 1e-30  # in a sum of exps above this, terms that float32 rounds to zero do not count


@dataclass(frozen=True)
class Beliefs:
    """The sums of forward-backward for a batch; see `CRF.beliefs`.

    Attributes:
        emissions: (S, K).
        transitions: (K, K).
        alpha: (S, K) log-sum over all paths up to a token and its tag.
        beta: (S, K) log-sum over all paths after it.
        log_z: (S,) log Z of the token's sentence.
    """

    emissions: Tensor
    transitions: Tensor
    alpha: Tensor
    beta: Tensor
    log_z: Tensor

    def of_tokens(self) -> Tensor:
        """Return p(y_t = k) for every token and tag, (S, K)."""
        return (self.alpha + self.beta - self.log_z[:, None]).exp().clamp(max=1.0)

    def of_run(self, start: int, tags: list[int]) -> float:
        """Return the probability of exactly these tags from token `start` on, all in one sentence."""
        places = torch.arange(start + 1, start + len(tags))
        inside = self.emissions[places, tags[1:]].sum() + self.transitions[tags[:-1], tags[1:]].sum()
        end = start + len(tags) - 1
        log_p = self.alpha[start, tags[0]] + inside + self.beta[end, tags[-1]] - self.log_z[start]
        return min(1.0, log_p.exp().item())  # rounding may bring it slightly above


class CRF(nn.Module):
    """Scores of transitions between tags; forbidden transitions have a fixed, large negative score.

    Args:
        legal: (K + 1, K + 1) bool, whether tag j may follow tag i; the last row and column are the boundary.
    """

    legal: Tensor

    def __init__(self, legal: Tensor) -> None:
        super().__init__()
        self.register_buffer("legal", legal, persistent=False)
        self.weight = nn.Parameter(torch.zeros(legal.shape))

    def loss(self, emissions: Tensor, tags: Tensor, packing: Packing) -> Tensor:
        """Return -Σ log p(y) over the sentences of the batch.

        Args:
            emissions: (S, K).
            tags: (S,) the gold tags.
            packing: How the sentences are packed.
        """
        return self._alphas(emissions, packing)[1].sum() - self._path_scores(emissions, tags, packing)

    @torch.no_grad()
    def best_paths(self, emissions: Tensor, packing: Packing) -> Tensor:
        """Return the most likely tags of each sentence (Viterbi), (S, K) → (S,)."""
        inner, begin, end = self._parts()
        steps = torch.split(emissions[packing.index[0].to(emissions.device)], packing.step_sizes)
        score, pointers = steps[0] + begin, []  # (b, K)
        scores = [score]
        for step in steps[1:]:
            best, pointer = (score[: len(step), :, None] + inner).max(dim=1)  # (b, K) each
            score = best + step
            scores.append(score)
            pointers.append(pointer)
        tags: list[Tensor] = []
        following = emissions.new_zeros(0, dtype=torch.long)  # tags of the sentences that continue
        back: list[Tensor | None] = [None, *reversed(pointers)]
        for at_step, origin in zip(reversed(scores), back, strict=True):
            going_on = following if origin is None else origin.gather(1, following[:, None])[:, 0]
            ending = (at_step[len(going_on) :] + end).argmax(dim=1)
            following = torch.cat([going_on, ending])  # (b,)
            tags.append(following)
        return torch.cat(tags[::-1])[packing.inverse[0].to(emissions.device)]

    @torch.no_grad()
    def beliefs(self, emissions: Tensor, packing: Packing) -> "Beliefs":
        """Compute the sums behind the probabilities of tokens and runs of tokens (forward-backward)."""
        alpha, log_z = self._alphas(emissions, packing)
        beta, _ = self._alphas(emissions, packing, direction=1)
        by_step = torch.cat([log_z[:size] for size in packing.step_sizes])  # (S,) packed
        return Beliefs(
            emissions, self._parts()[0], alpha, beta - emissions, by_step[packing.inverse[0].to(log_z.device)]
        )

    def log_odds(self, emissions: Tensor, packing: Packing, starts: Tensor, allowed: Tensor) -> Tensor:
        """Return log p / (1 - p), p that some tokens in a row have tags among those that are allowed.

        1 - p is a sum over the first token whose tag is not, so that nothing is lost where p is nearly 1.

        Args:
            emissions: (S, K).
            packing: How the sentences are packed.
            starts: (n,) the first token of each run.
            allowed: (R, K) bool, the tags that each token of a run may have.

        Returns:
            (n,), differentiable.
        """
        alpha, _ = self._alphas(emissions, packing)
        beta, _ = self._alphas(emissions, packing, direction=1)
        beta, inner = beta - emissions, self._parts()[0]
        path, wrong = alpha[starts], []  # (n, K)
        for number, tags in enumerate(allowed):
            if number:
                path = torch.logsumexp(path[:, :, None] + inner, dim=1) + emissions[starts + number]
            after = beta[starts + number]
            wrong.append(torch.logsumexp((path + after).masked_fill(tags, _NEVER), dim=1))
            path = path.masked_fill(~tags, _NEVER)
        return torch.logsumexp(path + after, dim=1) - torch.logsumexp(torch.stack(wrong), dim=0)

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores between tags (K, K), from the boundary (K,) and to the boundary (K,)."""
        transitions = self.weight.masked_fill(~self.legal, _FORBIDDEN)
        return transitions[:-1, :-1], transitions[-1, :-1], transitions[:-1, -1]

    def _alphas(self, emissions: Tensor, packing: Packing, direction: int = 0) -> tuple[Tensor, Tensor]:
        """Compute log Σ exp(score) over all paths up to and including each tag of each token.

        Returns:
            (S, K), and log Z (b,) of each sentence with tokens, longest first. Direction 1 reads backward.
        """
        inner, begin, end = self._parts()
        if direction == 1:
            inner, begin, end = inner.T, end, begin
        steps = torch.split(emissions[packing.index[direction].to(emissions.device)], packing.step_sizes)
        factors = inner.exp()  # (K, K)
        alpha = steps[0] + begin  # (b, K)
        alphas, ended = [alpha], []
        for step in steps[1:]:
            ended.append(alpha[len(step) :])
            alpha = _sum_of_steps(alpha[: len(step)], inner, factors) + step
            alphas.append(alpha)
        last = torch.cat([*ended, alpha][::-1])  # (B, K)
        inverse = packing.inverse[direction].to(emissions.device)
        return torch.cat(alphas)[inverse], torch.logsumexp(last + end, dim=1)

    def _path_scores(self, emissions: Tensor, tags: Tensor, packing: Packing) -> Tensor:
        """Return the summed scores of the gold paths."""
        boundary = emissions.shape[1]
        steps = torch.split(tags[packing.index[0].to(tags.device)], packing.step_sizes)
        none = tags.new_zeros(0)
        pairs = [  # each tag and the one it follows
            torch.stack([tags.new_full((len(steps[0]),), boundary), steps[0]]),
            *(torch.stack([step[: len(after)], after]) for step, after in pairwise(steps)),
        ]
        for step, after in pairwise((*steps, none)):
            ending = step[len(after) :]
            pairs.append(torch.stack([ending, torch.full_like(ending, boundary)]))
        before, after = torch.cat(pairs, dim=1)
        transitions = self.weight[before, after]
        return emissions.gather(1, tags[:, None]).sum() + transitions.sum()


def _sum_of_steps(alpha: Tensor, inner: Tensor, factors: Tensor) -> Tensor:
    """Return log Σ_i exp(alpha_i + inner_ij), (b, K) → (b, K).

    A product with factors = exp(inner) avoids a tensor (b, K, K), which is expensive with many tags. If
    scores lie so far apart that terms which count may be rounded to zero, the sum is done term by term.
    """
    largest = alpha.detach().amax(dim=1, keepdim=True)  # (b, 1)
    total = (alpha - largest).exp() @ factors
    if total.min() > _SAFE:
        return total.log() + largest
    return torch.logsumexp(alpha[:, :, None] + inner, dim=1)
