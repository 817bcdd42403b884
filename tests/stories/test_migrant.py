"""Somebody comes with a program for AllenNLP: its ELMo modules are imported from elmokit, the rest is torch.

The model is that of many such programs: `ElmoTokenEmbedder` under a linear layer, fed by the token indexer.
"""

import pytest
import torch
from torch import nn

import elmokit
from elmokit.compat.allennlp import Elmo, ScalarMix, batch_to_ids
from tests.tiny import tiny_config, tiny_options, write_folder

SENTENCES = [["the", "cat", "sat"], ["a", "bank"], ["the", "river", "bank", "sat", "."]]
LABELS = torch.tensor([0, 1, 0])


class ElmoTokenEmbedder(nn.Module):
    """The class of the migration guide in place of AllenNLP's of this name."""

    def __init__(self, options, weights, projection_dim, dropout=0.0):
        super().__init__()
        self._elmo = Elmo(options, weights, 1, dropout=dropout)
        self._projection = nn.Linear(self._elmo.get_output_dim(), projection_dim)

    def forward(self, ids):
        return self._projection(self._elmo(ids)["elmo_representations"][0])


class Model(nn.Module):
    def __init__(self, options, weights):
        super().__init__()
        self.embedder = ElmoTokenEmbedder(options, weights, 8)
        self.classes = nn.Linear(8, 2)

    def forward(self, ids):
        vectors = self.embedder(ids).tanh()  # (B, T, 8)
        mask = (ids > 0).any(dim=-1, keepdim=True)  # (B, T, 1)
        return self.classes((vectors * mask).sum(dim=1) / mask.sum(dim=1))


@pytest.fixture
def files(tmp_path):
    """Options and weights as AllenNLP reads them."""
    config = tiny_config()
    write_folder(tmp_path, config, options=tiny_options(config))
    return str(tmp_path / "options.json"), str(tmp_path / "lm_weights.hdf5")


def test_a_program_for_allennlp(files, tmp_path):
    torch.manual_seed(1)
    model, ids = Model(*files), batch_to_ids(SENTENCES)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids), LABELS).backward()
        optimizer.step()
    print(model(ids).softmax(dim=1))
    assert model(ids).argmax(dim=1).tolist() == LABELS.tolist()
    # The biLM itself was not trained, the mix was.
    assert all(p.grad is None for p in model.embedder._elmo._elmo_lstm.parameters())
    assert model.embedder._elmo.scalar_mix_0.gamma.item() != 1

    torch.save(model.state_dict(), tmp_path / "best.th")
    again = Model(*files)
    again.load_state_dict(torch.load(tmp_path / "best.th", weights_only=True))
    torch.testing.assert_close(again(ids), model(ids))


def test_the_same_in_the_words_of_elmokit(files):
    """The rows of the guide's table about mixes."""
    elmo = Elmo(*files, 1, dropout=0.0, scalar_mix_parameters=[0.5, -1.0, 2.0])
    expected = elmo(batch_to_ids(SENTENCES))["elmo_representations"][0][2]
    own = elmokit.load(*files, mix=elmokit.ScalarMix(3, weights=[0.5, -1.0, 2.0]))
    torch.testing.assert_close(torch.from_numpy(own.embed(SENTENCES)[2].vectors), expected, atol=1e-5, rtol=0)

    mix = ScalarMix(3, initial_scalar_parameters=[0.5, -1.0, 2.0], trainable=False)
    activations = elmo._elmo_lstm(batch_to_ids(SENTENCES))["activations"]
    torch.testing.assert_close(mix(activations)[2, 1:6], expected, atol=1e-5, rtol=0)
