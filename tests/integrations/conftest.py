"""Models of every kind of encoder."""

from dataclasses import replace

import pytest

from elmokit.formats import ModelBundle, load_model
from elmokit.text import TokenizerSpec
from tests import many_langs
from tests.tiny import WORDS, tiny_bundle, tiny_config, tiny_model


@pytest.fixture(params=["bytes", "words", "lexicon", "lexicon without words"])
def any_bundle(request, tmp_path) -> ModelBundle:
    if request.param == "bytes":
        return tiny_bundle()
    if request.param == "words":
        return tiny_bundle(tiny_model(tiny_config(words=len(WORDS))), vocabulary=True)
    word_dim = 0 if "without" in request.param else 4
    network = many_langs.network(token_embedder={"word_dim": word_dim})
    bundle = load_model(many_langs.write_folder(tmp_path / "many_langs", network))
    return replace(bundle, tokenizer=TokenizerSpec(name="whitespace"))
