"""The bodies of requests, as pydantic checks them and as the OpenAPI schema shows them."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)

from elmokit.embed import LayerChoice, SentencePooling
from elmokit.language_model import Side

MOST_GAPS = 8
MOST_LINES = 20_000

_TEXT = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(token, str) for token in value)
    )


def _texts(value: object) -> list[Any]:
    """Return one text, or many, as a list of texts."""
    texts = [value] if isinstance(value, str) else value
    if isinstance(texts, list) and texts and all(map(_is_text, texts)):
        return texts
    if isinstance(texts, list) and any(isinstance(one, int) for one in texts):
        raise ValueError("numbers of tokens mean nothing to an ELMo; send strings, or lists of words")
    raise ValueError(
        "expected a text, a list of texts, or a list of lists of words; the list must not be empty"
    )


def _layers(value: object) -> Any:  # noqa: ANN401 (what it takes)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, list) and value and all(type(one) is int for one in value):
        return value
    raise ValueError('expected "mix", "top", "average", "all", a number, or a list of numbers')


Texts = Annotated[
    list[Any],
    PlainValidator(_texts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": _TEXT, "minItems": 1}]}),
]
Layers = Annotated[
    LayerChoice,
    PlainValidator(_layers),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["mix", "top", "average", "all"]},
                {"type": "integer"},
                {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            ]
        }
    ),
]
ModelName = Annotated[
    str, Field(description="Name of a served model; `/v1/models` lists them.", max_length=200)
]
Line = Annotated[str, Field(max_length=200_000)]
_Value: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr
Condition: TypeAlias = _Value | list[_Value] | dict[Literal["least", "most"], StrictInt | StrictFloat]
_SENTENCES: list[JsonValue] = ["The bank raised its rates.", "They sat on the bank of the river."]


class RequestBody(BaseModel):
    """What all bodies share: other fields are refused, since they would have no effect."""

    model_config = ConfigDict(extra="forbid", str_max_length=16 << 20)


class EmbeddingsRequest(RequestBody):
    """Vectors of whole texts, as OpenAI's API has it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "en", "input": _SENTENCES, "encoding_format": "float"}]}
    )

    input: Texts = Field(description="A text, a list of texts, or a list of lists of words.")
    model: ModelName
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="base64: float32 numbers, little-endian."
    )
    dimensions: int | None = Field(
        None, ge=1, description="Keep so many numbers, the most important ones; only of whitened vectors."
    )
    user: str | None = Field(None, description="Ignored.")
    pooling: SentencePooling | None = Field(
        None,
        description="How the vectors of words become one; by default whitened, or mean if the model has no "
        "statistics for that.",
    )
    layers: Layers | None = Field(
        None, description="Which layer, a name or a number; for mean, max and ends."
    )


class Mix(RequestBody):
    """A mix of the layers: γ · Σ softmax(w)ⱼ · hⱼ."""

    weights: list[Annotated[float, Field(allow_inf_nan=False)]] = Field(
        description="w, a number for each layer, before the softmax."
    )
    gamma: float = Field(1.0, allow_inf_nan=False)


class TokensRequest(RequestBody):
    """Vectors of each word. `Accept` chooses between JSON, Arrow and safetensors."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "en", "input": _SENTENCES[:1], "layers": "top"}]}
    )

    input: Texts = Field(description="A text, a list of texts, or a list of lists of words.")
    model: ModelName
    layers: Layers = Field("mix", description="Which layers: a name, a number, or a list of numbers.")
    mix: Mix | None = Field(None, description="Mix the layers like this; only with layers=mix.")
    encoding_format: Literal["float", "base64"] = Field("float", description="Of the vectors in JSON.")


class ScoreRequest(RequestBody):
    """How likely each word of a sentence is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "en", "input": _SENTENCES[:1]}]})

    input: Texts = Field(description="A text, a list of texts, or a list of lists of words.")
    model: ModelName


class FillRequest(RequestBody):
    """Words for the gaps of a sentence."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "en", "input": "The [MASK] raised its rates.", "top": 5}]}
    )

    input: Line = Field(description=f"A sentence with one to {MOST_GAPS} [MASK].")
    model: ModelName
    top: int = Field(10, ge=1, le=100, description="Words for each gap.")
    by: Side = Field("both", description="What has to make a word likely.")


class GenerateRequest(RequestBody):
    """A sentence that goes on."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "en", "prompt": "The bank", "max_tokens": 20, "seed": 1}]}
    )

    prompt: Line = Field("", description="How the sentence begins.")
    model: ModelName
    max_tokens: int = Field(40, ge=0, le=400)
    temperature: float = Field(1.0, ge=0, le=100, allow_inf_nan=False)
    top_p: float = Field(0.95, gt=0, le=1, allow_inf_nan=False)
    seed: int | None = Field(None, ge=0, lt=2**53, description="The same seed, the same sentence.")


class PredictRequest(RequestBody):
    """Texts to label."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": ["Ada Lovelace lived in London."]}]})

    input: list[Any] = Field(
        min_length=1, description="Inputs as the task takes them: texts, lists of words, pairs, …"
    )


class SearchRequest(RequestBody):
    """The documents of an index that answer a query best, each with its best passage."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "why do banks raise rates?", "k": 3}]}
    )

    query: Line = Field(min_length=1, description="Words, a question or a sentence.")
    k: int = Field(10, ge=1, le=1000, description="How many documents.")
    by: list[Literal["bm25", "dense", "late"]] | None = Field(
        None,
        min_length=1,
        description="Words, vectors of passages, vectors of words; by default all that the index has.",
    )
    where: dict[str, Condition] | None = Field(
        None, description='Conditions on metadata: a value, a list of values, or {"least": …, "most": …}.'
    )
    explain: bool = Field(False, description="Say which words matched by their meaning.")


class NeighboursRequest(RequestBody):
    """The uses of a word in lines of text that are most like its use in a sentence."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "en", "word": "bank", "query": "a bank by the river", "input": _SENTENCES, "k": 2}
            ]
        }
    )

    input: list[Line] = Field(min_length=1, max_length=MOST_LINES, description="Sentences to search.")
    model: ModelName
    word: str = Field(min_length=1, max_length=200)
    query: Line = Field(description="A sentence with the word.")
    k: int = Field(10, ge=1, le=1000)
    layers: Layers = Field("top", description="Which layer to compare.")
    any_word: bool = Field(False, description="Compare with all words, not only the same one.")


class UsesRequest(RequestBody):
    """All uses of a word in a text: their senses, and their places on a map of each layer."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "en", "word": "bank", "input": _SENTENCES}]}
    )

    input: list[Line] = Field(min_length=1, max_length=MOST_LINES, description="Lines of text.")
    model: ModelName
    word: str = Field(min_length=1, max_length=200)
    split: bool = Field(False, description="Split the lines into sentences first.")
    match_case: bool = False
    most: int = Field(500, ge=1, le=2000, description="How many uses to keep.")
    num_senses: int | None = Field(None, ge=1, le=20)
