"""How a language model combines its two directions to fill a gap."""

from dataclasses import asdict, dataclass

from elmokit.base import bounded, check_fields


@dataclass(frozen=True)
class FillWeights:
    """Weights of log p(w | left), log p(w | right) and log u(w), the frequency of w.

    The default is right if the sides are independent given w. `LanguageModel.fit_fill` finds better ones.
    """

    forward: float = bounded(1.0, least=-100, most=100)
    backward: float = bounded(1.0, least=-100, most=100)
    frequency: float = bounded(-1.0, least=-100, most=100)

    def __post_init__(self) -> None:
        check_fields(self)

    def to_dict(self) -> dict[str, float]:
        """Return plain data for JSON."""
        return asdict(self)
