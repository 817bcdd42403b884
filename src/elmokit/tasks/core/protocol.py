"""The interfaces between `tasks.core` and the tasks: what a task and its head have to offer.

    labelled file ──Formats──▶ examples ──Task.fit──▶ examples ──TaskModel──▶ Hidden ──Head.loss──▶ loss
    input ──Task.read_input──▶ item ──TaskModel──▶ Hidden ──Head.decode──▶ output ──Task.present──▶ prediction

An example may hold one text, a pair of texts or the sentences of a document: the model reads its `texts`, all
else is between the task and its head. Type variables: E an example, O a head's output, P a prediction.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from torch import Tensor

from elmokit.model import Packing
from elmokit.tasks.core.counting import Scores
from elmokit.tasks.core.labelled_files import Formats
from elmokit.text import Tokenizer

E = TypeVar("E", bound="Example")
O = TypeVar("O")  # noqa: E741 (the output of a head)
P = TypeVar("P")
O_in = TypeVar("O_in", contravariant=True)
E_in = TypeVar("E_in", bound="Example", contravariant=True)


class Hidden(NamedTuple):
    """The vectors that a head reads, one text after another.

    Attributes:
        vectors: (S, D) one for each token.
        lengths: (B,) tokens of each text.
        packing: how the texts are packed into batches of an RNN.
    """

    vectors: Tensor
    lengths: Tensor
    packing: Packing


class Item(Protocol):
    """Something that a model reads: a labelled example, or an input without labels."""

    @property
    def texts(self) -> Sequence[Sequence[str]]:
        """The tokens of each text."""
        ...


class Example(Item, Protocol):
    """An item with its labels: a dataclass, whose `repr` leaves out `where`."""

    @property
    def where(self) -> str:
        """The file and line, for messages."""
        ...


class Head(Protocol[E_in, O]):
    """The part of a model that belongs to the task alone: an `nn.Module` with these two methods."""

    def loss(self, hidden: Hidden, examples: Sequence[E_in]) -> Tensor:
        """Return the mean loss of a batch, a scalar."""
        ...

    def decode(self, hidden: Hidden, items: Sequence[Any]) -> list[O]:
        """Return an output for each item (an example, or what `Task.read_input` returned); no gradients."""
        ...


class Task(Protocol[E, O, P]):
    """A task whose labels are known: a frozen dataclass.

    Its fields are `settings` and what the training data told (label sets, say) as plain data: they are saved
    with a model as they are.
    """

    name: str
    formats: Formats[Any]  # how labelled files are read
    settings_type: Any  # a subclass of `TaskSettings`
    # A task may also have `reads_documents = True`: its inputs are documents, not sentences.

    @property
    def settings(self) -> Any:  # noqa: ANN401 (of the task's own settings type)
        """The settings that the task was made with."""
        ...

    @classmethod
    def fit(cls, settings: Any, examples: Sequence[E]) -> "tuple[Task[E, O, P], list[E]]":  # noqa: ANN401
        """Return the task for these training examples, and the examples as `prepare` returns them.

        Raises:
            DataError: the labels cannot be used.
            ConfigError: the settings do not fit the labels.
        """
        ...

    def prepare(self, examples: Sequence[E], *, allow_unseen: bool) -> list[E]:
        """Check other examples and bring their labels into the form that is learnt.

        Raises:
            DataError: an example has a label that the training data do not have (unless `allow_unseen`), or
                is wrong in another way.
        """
        ...

    def make_head(self, dim: int, examples: Sequence[E] = ()) -> Head[E, O]:
        """Build the head for vectors of size `dim`.

        Args:
            dim: D.
            examples: the training examples, to count labels for class weights; none for a loaded model.
        """
        ...

    def score(self, examples: Sequence[E], outputs: Sequence[O], *, strict: bool = False) -> Scores:
        """Compare outputs with prepared examples; `strict` counts only well-formed outputs as true."""
        ...

    def describe(self, example: E, output: O) -> tuple[str, str]:
        """Return in words what is true and what was predicted; the two are equal if there is no error."""
        ...

    def read_input(self, given: Any, tokenize: Tokenizer) -> Item:  # noqa: ANN401 (whatever the task takes)
        """Return what a model reads of an input such as a string or a list of tokens."""
        ...

    def present(self, item: Any, output: O) -> P:  # noqa: ANN401 (what `read_input` returned)
        """Return the output for one input in the form that users see; `to_dict()` of it goes to JSON."""
        ...
