"""Beam search against exhaustive search, the length penalty by hand, constraints, sampled sequences."""

import itertools
import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import elmokit
from elmokit.decoding import Constraints, beam_search, penalised, sample_sequences

END, SIZE, BEGIN = 0, 3, 0


@dataclass(frozen=True)
class Prefixes:
    """A state that remembers the item and the tokens of each row."""

    items: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]

    def rows(self, index):
        places = index.tolist()
        return Prefixes(tuple(self.items[at] for at in places), tuple(self.tokens[at] for at in places))


class TableModel:
    """Random log-probabilities that depend on the item and all tokens before."""

    def __init__(self, seed, size=SIZE):
        self.seed, self.size = seed, size

    def logs(self, item, tokens):
        generator = torch.Generator().manual_seed(hash((self.seed, item, tokens)) % 2**60)
        return torch.randn(self.size, generator=generator, dtype=torch.double).mul(2).log_softmax(0)

    def __call__(self, last, state):
        started = len(state.tokens[0]) > 0 or self.begun
        tokens = tuple(
            (*known, token) if started else known
            for known, token in zip(state.tokens, last.tolist(), strict=True)
        )
        self.begun = True
        logs = [self.logs(item, known) for item, known in zip(state.items, tokens, strict=True)]
        return torch.stack(logs), Prefixes(state.items, tokens)

    def search(self, most, method=beam_search, **arguments):
        self.begun = False
        state = Prefixes(tuple(range(len(most))), ((),) * len(most))
        return method(self, state, begin=BEGIN, end=END, most=most, **arguments)

    def probability(self, item, tokens):
        whole = (*tokens, END)
        return sum(float(self.logs(item, whole[:at])[token]) for at, token in enumerate(whole))

    def all(self, item, most, penalty):
        """Every sequence with its score, the best first."""
        lengths = range(most + 1)
        found = (one for n in lengths for one in itertools.product(range(1, self.size), repeat=n))
        scored = [(penalised(self.probability(item, one), len(one) + 1, penalty), one) for one in found]
        return sorted(scored, reverse=True)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.6, 1.0, 3.0]))
def test_a_wide_beam_finds_what_exhaustive_search_finds(seed, penalty):
    model, most = TableModel(seed), [3, 1, 4]
    found = model.search(most, beam=SIZE**5, length_penalty=penalty)
    for item, sequences in enumerate(found):
        score, tokens = model.all(item, most[item], penalty)[0]
        assert sequences[0].tokens == tokens
        assert sequences[0].score == pytest.approx(score, rel=1e-4)
        assert sequences[0].log_probability == pytest.approx(model.probability(item, tokens), rel=1e-4)
        assert [one.score for one in sequences] == sorted((one.score for one in sequences), reverse=True)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_an_item_is_found_the_same_whatever_stands_beside_it(seed, beam):
    model = TableModel(seed)
    together = model.search([4, 2, 3], beam=beam)
    shifted = TableModel(seed)
    shifted.logs = lambda item, tokens: model.logs(item + 1, tokens)
    assert shifted.search([2], beam=beam)[0] == together[1]


def test_one_beam_takes_the_most_probable_token_each_time():
    model = TableModel(1)
    (found,) = model.search([5], beam=1, length_penalty=0.0)
    tokens = ()
    while len(tokens) < 5 and (best := int(model.logs(0, tokens).argmax())) != END:
        tokens = (*tokens, best)
    assert found[0].tokens == tokens


def test_length_penalty_by_hand():
    assert penalised(-6.0, 1, 1.0) == -6.0  # (5 + 1) / 6 = 1
    assert penalised(-6.0, 7, 1.0) == -3.0  # (5 + 7) / 6 = 2
    assert penalised(-6.0, 7, 2.0) == -1.5
    assert penalised(-6.0, 19, 0.5) == -3.0  # (5 + 19) / 6 = 4


class TwoSequences(TableModel):
    """p("") = e^-1, and p(1 1 1) = e^-1.3: short is more probable, long has the better mean."""

    def logs(self, item, tokens):
        ends = {(): -1.0, (1,): -9.0, (1, 1): -9.0, (1, 1, 1): 0.0}.get(tokens, 0.0)
        goes = {(): -1.3, (1,): 0.0, (1, 1): 0.0, (1, 1, 1): -9.0}.get(tokens, 0.0)
        return torch.tensor([ends, goes])


@pytest.mark.parametrize(("penalty", "tokens", "score"), [(0.0, (), -1.0), (1.0, (1, 1, 1), -1.3 / 1.5)])
def test_the_length_penalty_decides(penalty, tokens, score):
    ((best, *_),) = TwoSequences(0, size=2).search([3], beam=2, length_penalty=penalty)
    assert best.tokens == tokens
    assert best.score == pytest.approx(score, rel=1e-5)


def test_constraints():
    model = TableModel(3, size=5)
    for rules, kept in (
        (Constraints(banned=(1, 2)), lambda tokens: not {1, 2} & set(tokens)),
        (Constraints(least=3), lambda tokens: len(tokens) >= 3),
        (Constraints(no_repeat=1), lambda tokens: len(set(tokens)) == len(tokens)),
        (
            Constraints(no_repeat=2, least=6),
            lambda tokens: len(set(itertools.pairwise(tokens))) == len(tokens) - 1,
        ),
    ):
        for sequence in model.search([6], beam=3, constraints=rules)[0]:
            assert kept(sequence.tokens)
            assert len(sequence.tokens) <= 6
            assert sequence.log_probability == pytest.approx(model.probability(0, sequence.tokens), rel=1e-4)
        (sampled,) = model.search(
            [6], sample_sequences, generators=[torch.Generator().manual_seed(1)], constraints=rules
        )
        assert kept(sampled.tokens)


def test_a_sequence_that_may_not_go_on_has_to_end():
    rules = Constraints(banned=(1, 2), least=2)
    assert TableModel(0).search([4], constraints=rules)[0][0].tokens == ()


def test_prefixes():
    model = TableModel(5)
    found = model.search([4, 4, 2], prefixes=[[2, 1], [], [1]], beam=2)
    assert all(one.tokens[:2] == (2, 1) for one in found[0])
    assert all(one.tokens[:1] == (1,) for one in found[2])
    assert found[1] == model.search([4, 4, 2], beam=2)[1]


def test_samples_follow_the_model_and_only_their_own_generator():
    model = TableModel(7)

    def generators(*seeds):
        return [torch.Generator().manual_seed(seed) for seed in seeds]

    one = model.search([4, 4], sample_sequences, generators=generators(1, 2))
    other = model.search([4, 4], sample_sequences, generators=generators(1, 3))
    assert one[0] == other[0]
    assert one[0].log_probability == pytest.approx(model.probability(0, one[0].tokens), rel=1e-4)
    count = 400
    model.logs = lambda item, tokens: torch.tensor([0.5, 0.25, 0.25]).log()
    drawn = model.search([9] * count, sample_sequences, generators=generators(*range(count)))
    assert sum(not one.tokens for one in drawn) / count == pytest.approx(0.5, abs=0.08)
    (greedy,) = TableModel(7).search([4], sample_sequences, generators=generators(1), temperature=0.0)
    assert greedy.tokens == TableModel(7).search([4], beam=1, length_penalty=0.0)[0][0].tokens


def test_impossible_numbers():
    with pytest.raises(elmokit.ConfigError, match="beam"):
        TableModel(0).search([3], beam=0)
    with pytest.raises(elmokit.ConfigError, match="length_penalty"):
        TableModel(0).search([3], length_penalty=-1)
    with pytest.raises(elmokit.ConfigError, match="least"):
        Constraints(least=-1)
    assert TableModel(0).search([], beam=2) == []
    assert math.isfinite(TableModel(0).search([0])[0][0].score)
