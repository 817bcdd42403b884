"""What each route answers, compared with the library."""

import base64
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load

import elmokit
from elmokit.language_model import LanguageModel

TEXTS = ["the cat sat on the bank", "a river", "né 中"]


def ask(client, route, **body):
    answer = client.post(route, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client, route, status, **body):
    answer = client.post(route, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


def test_embeddings_are_those_of_the_library(client, embedder):
    answer = ask(client, "/v1/embeddings", model="tiny", input=TEXTS)
    assert answer["object"] == "list"
    assert [one["index"] for one in answer["data"]] == [0, 1, 2]
    found = np.array([one["embedding"] for one in answer["data"]], np.float32)
    np.testing.assert_allclose(found, embedder.encode(TEXTS), rtol=1e-6, atol=1e-7)
    assert answer["usage"] == {"prompt_tokens": 10, "total_tokens": 10}


def test_base64_is_little_endian_float32(client, embedder):
    answer = ask(client, "/v1/embeddings", model="tiny", input="a river", encoding_format="base64")
    found = np.frombuffer(base64.b64decode(answer["data"][0]["embedding"]), "<f4")
    np.testing.assert_allclose(found, embedder.encode("a river"), rtol=1e-6, atol=1e-7)


def test_dimensions_keep_the_most_important_numbers(client, embedder):
    for dim in (1, 7, 24):
        found = ask(client, "/v1/embeddings", model="tiny", input=TEXTS, dimensions=dim)
        vectors = np.array([one["embedding"] for one in found["data"]], np.float32)
        np.testing.assert_allclose(vectors, embedder.encode(TEXTS, dim=dim), rtol=1e-5, atol=1e-6)
        assert vectors.shape == (3, dim)


def test_lists_of_words_layers_and_pooling(client, embedder):
    words = [["the", "cat"], ["New York"]]
    answer = ask(client, "/v1/embeddings", model="tiny", input=words, layers=0, pooling="max")
    found = np.array([one["embedding"] for one in answer["data"]], np.float32)
    np.testing.assert_allclose(found, embedder.encode(words, layers=0, pooling="max"), rtol=1e-6, atol=1e-7)


def test_a_text_without_words_has_a_vector_of_zeros(client):
    assert set(ask(client, "/v1/embeddings", model="tiny", input="")["data"][0]["embedding"]) == {0.0}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"input": "a"}, 400, "model: Field required"),
        ({"model": "gpt", "input": "a"}, 404, "there is no model 'gpt'; there is tiny"),
        ({"model": "tiny", "input": []}, 400, "input: expected a text, a list of texts"),
        ({"model": "tiny", "input": [1, 2]}, 400, "input: numbers of tokens mean nothing to an ELMo"),
        ({"model": "tiny", "input": [["a", 1]]}, 400, "input: expected a text"),
        ({"model": "tiny", "input": "a", "dimensions": 25}, 400, "from 1 to 24, found 25"),
        ({"model": "tiny", "input": "a", "dimensions": 8, "pooling": "mean"}, 400, "dimensions: dim=8 needs"),
        ({"model": "tiny", "input": "a", "layers": [0, 1]}, 400, "one vector, of one layer"),
        ({"model": "tiny", "input": "a", "layers": 7}, 400, "there is no layer 7; the model has 0 to 2"),
        ({"model": "tiny", "input": "a", "colour": 1}, 400, "colour: Extra inputs are not permitted"),
        ({"model": "tiny", "input": ["a"] * 2049}, 413, "2049 texts are more than the 2048 of a request"),
        ({"model": "tiny", "input": "a " * 20_001}, 413, "20001 tokens are more than the 20000 of a request"),
    ],
)
def test_what_embeddings_refuse(client, body, status, message):
    error = refused(client, "/v1/embeddings", status, **body)
    assert message in error["message"]
    assert set(error) == {"message", "type", "param", "code"}


def test_tokens_have_offsets_and_layers(client, embedder):
    answer = ask(client, "/v1/tokens", model="tiny", input=TEXTS, layers=[0, 2])
    for one, sentence in zip(answer["data"], embedder.embed(TEXTS), strict=True):
        assert one["tokens"] == sentence.tokens
        assert [tuple(pair) for pair in one["offsets"]] == sentence.offsets
        np.testing.assert_allclose(one["vectors"], sentence.select([0, 2]), rtol=1e-5, atol=1e-6)
    assert answer["layers"] == [0, 2]


def test_tokens_with_a_mix_of_ones_own(client, embedder):
    mix = {"weights": [0.0, 1.0, -1.0], "gamma": 2.0}
    answer = ask(client, "/v1/tokens", model="tiny", input="a river", mix=mix, encoding_format="base64")
    (one,) = answer["data"]
    found = np.frombuffer(base64.b64decode(one["vectors"]), "<f4").reshape(one["shape"])
    expected = elmokit.ScalarMix(3, weights=mix["weights"], gamma=2.0)(embedder.embed("a river").to_torch())
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"mix": {"weights": [1.0]}}, "the model has 3 layers, found 1 weights"),
        ({"mix": {"weights": [1.0, 1.0, 1.0]}, "layers": "top"}, "mix has no effect with layers='top'"),
    ],
)
def test_mixes_that_do_not_fit(client, body, message):
    assert message in refused(client, "/v1/tokens", 400, model="tiny", input="a", **body)["message"]


def test_tokens_as_arrow(client, embedder):
    headers = {"accept": "application/vnd.apache.arrow.stream"}
    answer = client.post(
        "/v1/tokens", json={"model": "tiny", "input": TEXTS, "layers": "all"}, headers=headers
    )
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column_names == ["line", "text", "tokens", "offsets", "layer_0", "layer_1", "layer_2"]
    assert table["tokens"][0].as_py() == embedder.embed(TEXTS[0]).tokens
    np.testing.assert_allclose(
        np.array(table["layer_2"][0].as_py()), embedder.embed(TEXTS[0]).layers[2], rtol=1e-5, atol=1e-6
    )


def test_tokens_as_safetensors(client, embedder):
    headers = {"accept": "application/x-safetensors"}
    answer = client.post("/v1/tokens", json={"model": "tiny", "input": TEXTS}, headers=headers)
    tensors = load(answer.content)
    np.testing.assert_allclose(tensors["vectors.1"], embedder.embed(TEXTS[1]).vectors, rtol=1e-5, atol=1e-6)
    size = int.from_bytes(answer.content[:8], "little")
    about = json.loads(answer.content[8 : 8 + size])["__metadata__"]
    assert json.loads(about["texts"])[1]["tokens"] == ["a", "river"]


def test_a_format_that_there_is_not(client):
    answer = client.post("/v1/tokens", json={"model": "tiny", "input": "a"}, headers={"accept": "text/html"})
    assert answer.status_code == 406
    assert "there is application/json" in answer.json()["error"]["message"]


def test_scores_are_those_of_the_library(client, model_folder):
    (one,) = ask(client, "/v1/score", model="tiny", input="the cat sat")["data"]
    expected = LanguageModel.load(model_folder).score("the cat sat")
    assert one["tokens"] == list(expected.tokens)
    assert one["offsets"] == [[0, 3], [4, 7], [8, 11]]
    np.testing.assert_allclose(one["forward"], expected.forward, rtol=1e-5)
    np.testing.assert_allclose(one["surprises"], expected.surprises, rtol=1e-5)


@pytest.mark.parametrize("side", ["both", "forward", "backward"])
def test_gaps(client, model_folder, side):
    answer = ask(client, "/v1/fill", model="tiny", input="the [MASK] sat by the [MASK]", top=3, by=side)
    expected = LanguageModel.load(model_folder).fill("the [MASK] sat by the [MASK]", top=3, by=side)
    assert [[one["word"] for one in gap] for gap in answer["data"]] == [
        [one.word for one in gap] for gap in expected
    ]


def test_gaps_there_are_none_or_too_many_of(client):
    error = refused(client, "/v1/fill", 400, model="tiny", input="the cat")
    assert "expected [MASK] in the sentence, found none" in error["message"]
    error = refused(client, "/v1/fill", 400, model="tiny", input="[MASK]" * 9)
    assert "expected at most 8 [MASK] in the sentence, found 9" in error["message"]


def test_generation_repeats_with_its_seed(client):
    body = {"model": "tiny", "prompt": "the cat", "max_tokens": 5}
    first = ask(client, "/v1/generate", **body)
    again = ask(client, "/v1/generate", **body, seed=first["seed"])
    assert first["tokens"] == again["tokens"]
    assert first["tokens"][: first["prompt_tokens"]] == ["the", "cat"]


def test_predictions(client, tagger_folder):
    given = ["Ada saw Paris .", ["Grace", "Hopper", "left", "Rome", "."]]
    answer = ask(client, "/v1/predict/ner", input=given)
    expected = [one.to_dict() for one in elmokit.load_task(tagger_folder).predict(given)]
    assert answer["data"] == json.loads(json.dumps(expected))
    assert [span["text"] for span in answer["data"][0]["spans"]] == ["Ada", "Paris"]
    assert (
        "there is no task 'pos'; there is ner"
        in refused(client, "/v1/predict/pos", 404, input=["a"])["message"]
    )
    refused(client, "/v1/predict/ner", 400, input=[{"a": 1}])


def test_search(client, index_folder):
    answer = ask(client, "/v1/search/articles", query="rates of a bank", explain=True)
    expected = elmokit.Index.open(index_folder).search("rates of a bank", explain=True)
    assert [hit["id"] for hit in answer["data"]] == [hit.id for hit in expected] == ["rates", "river"]
    assert answer["data"][0]["metadata"] == {"year": 1999}
    assert answer["data"][0]["matches"]
    answer = ask(client, "/v1/search/articles", query="a", by=["dense"], where={"year": {"least": 2000}})
    assert [hit["id"] for hit in answer["data"]] == ["river"]
    error = refused(client, "/v1/search/other", 404, query="a")
    assert "there is no index 'other'; there is articles" in error["message"]
    refused(client, "/v1/search/articles", 400, query="a", by=["words"])
    refused(client, "/v1/search/articles", 400, query="a", where={"year": {"from": 1}})


def test_lines_with_too_many_tokens(client):
    lines = ["the bank " * 1000] * 12
    for route, more in (("uses", {}), ("neighbours", {"query": "a bank"})):
        error = refused(client, f"/v1/{route}", 413, model="tiny", word="bank", input=lines, **more)
        assert "tokens are more than the 20000 of a request" in error["message"]
    ask(client, "/v1/uses", model="tiny", word="bank", input=[*["the cat " * 1000] * 12, "a bank"])


def test_neighbours(client, embedder):
    body = {
        "model": "tiny",
        "word": "bank",
        "query": "by the bank",
        "input": ["the bank sat", "a cat", "bank"],
    }
    answer = ask(client, "/v1/neighbours", **body)
    _, expected = elmokit.nearest_uses(embedder, body["input"], "bank", query=body["query"])
    assert [one["line"] for one in answer["data"]] == [use.line for use in expected]
    error = refused(client, "/v1/neighbours", 400, **body | {"query": "a cat"})
    assert "has no word 'bank'" in error["message"]


LINES = ["the bank of the river.", "a bank sat here.", "Bank!", "the cat sat on a bank, a bank."]


def test_uses_have_senses_and_places(client):
    answer = ask(client, "/v1/uses", model="tiny", word="bank", input=LINES)
    assert [(use["line"], use["word"]) for use in answer["data"]] == [
        (1, "bank"), (2, "bank"), (3, "Bank"), (4, "bank"), (4, "bank"),
    ]  # fmt: skip
    places = np.array(answer["places"])
    assert places.shape == (3, 5, 2)
    assert np.abs(places).max() <= 1 + 1e-6
    np.testing.assert_allclose(places[0][0], places[0][1], atol=1e-5)  # the token layer knows no context
    assert np.array(answer["cosines"]).shape == (3, 5, 5)


def test_uses_as_parquet_for_a_map(client):
    headers = {"accept": "application/vnd.apache.parquet"}
    answer = client.post("/v1/uses", json={"model": "tiny", "word": "bank", "input": LINES}, headers=headers)
    table = pq.read_table(io.BytesIO(answer.content))
    assert {"text", "sense", "x", "y", "vector"} <= set(table.column_names)
    assert table.num_rows == 5


def test_models_and_signs_of_life(client):
    answer = client.get("/v1/models").json()
    (model,) = answer["data"]
    assert (model["id"], model["layers"], model["dim"], model["language_model"]) == ("tiny", 3, 32, True)
    assert model["embedding_dim"] == 24
    assert answer["indexes"] == [{"id": "articles", "documents": 2}]
    assert answer["tasks"] == [{"id": "ner", "task": "tagger", "language": None}]
    assert client.get("/health").json() == client.get("/ready").json() == {"status": "ok"}


def test_metrics_count_without_texts(client):
    ask(client, "/v1/embeddings", model="tiny", input="a verysecretword")
    text = client.get("/metrics").text
    assert 'elmokit_requests_total{route="/v1/embeddings",status="200"}' in text
    assert 'elmokit_batch_tokens_bucket{kind="embed"' in text
    assert "elmokit_queue_tokens 0.0" in text
    assert "verysecretword" not in text


def test_every_body_has_an_example_that_works(client):
    schema = client.get("/openapi.json").json()
    tried = 0
    for path, methods in schema["paths"].items():
        if "post" not in methods:
            continue
        content = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
        (example,) = schema["components"]["schemas"][content["$ref"].rsplit("/", 1)[-1]]["examples"]
        example = example | ({"model": "tiny"} if "model" in example else {})
        assert client.post(path.format(task="ner", index="articles"), json=example).status_code == 200, path
        tried += 1
    assert tried == 9
