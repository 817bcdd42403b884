"""Metadata by columns: for each field its distinct values, and for each document the number of its value."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from elmokit.base import parse_json
from elmokit.errors import ConfigError, DataError
from elmokit.search.documents import Value
from elmokit.search.index_arrays import Array, Arrays, text_arrays

# A value, several of them, or {"least": …, "most": …}.
Condition: TypeAlias = Value | Sequence[Value] | Mapping[str, float]
Filter: TypeAlias = Mapping[str, Condition]

_BOUNDS = {"least", "most"}


def metadata_arrays(metadata: Sequence[Mapping[str, Value]]) -> dict[str, Array]:
    """Return what is stored: the names of the fields, and for each its values and their numbers."""
    fields = sorted({name for one in metadata for name in one})
    arrays = text_arrays("fields", fields)
    for number, field in enumerate(fields):
        values: dict[str, int] = {}
        codes = np.full(len(metadata), -1, np.int32)
        for row, one in enumerate(metadata):
            if field in one:
                codes[row] = values.setdefault(json.dumps(one[field], ensure_ascii=False), len(values))
        arrays |= {f"field-{number}-codes": codes, **text_arrays(f"field-{number}", values)}
    return arrays


class Metadata:
    """The metadata of the documents of a segment.

    Raises:
        DataError: A file is damaged.
    """

    def __init__(self, arrays: Arrays, num_documents: int) -> None:
        self._num_documents = num_documents
        names = arrays.texts("fields")
        self._fields: dict[str, tuple[Array, list[Any]]] = {}
        for number in range(len(names)):
            values = arrays.texts(f"field-{number}")
            codes = arrays.get(f"field-{number}-codes", "int32", num_documents)
            if codes.size and not -1 <= int(codes.min()) <= int(codes.max()) < len(values):
                raise DataError(
                    f"{arrays.folder}: field-{number}-codes.npy is damaged; build the index again"
                )
            try:
                parsed = [parse_json(values[row]) for row in range(len(values))]
            except ValueError as error:
                raise DataError(f"{arrays.folder / f'field-{number}.npy'}: {error}") from error
            self._fields[names[number]] = codes, parsed

    def __getitem__(self, document: int) -> dict[str, Value]:
        return {
            name: values[codes[document]]
            for name, (codes, values) in self._fields.items()
            if codes[document] >= 0
        }

    def matching(self, conditions: Filter) -> npt.NDArray[np.bool_]:
        """Return which documents meet all conditions, (documents,); one without the field does not.

        Raises:
            ConfigError: A condition cannot be read.
        """
        found = np.ones(self._num_documents, bool)
        for name, condition in conditions.items():
            test = _test(name, condition)
            codes, values = self._fields.get(name, (np.full(self._num_documents, -1), []))
            fitting = np.array([*map(test, values), False], bool)  # the last is for -1, no value
            found &= fitting[codes]
        return found


def _test(name: str, condition: Condition) -> Any:  # noqa: ANN401 (a function from a value to bool)
    if isinstance(condition, Mapping):
        if not condition or set(condition) - _BOUNDS:
            raise ConfigError(f"the filter of {name!r} has {sorted(condition)}, expected 'least' or 'most'")
        least, most = condition.get("least", -np.inf), condition.get("most", np.inf)
        return lambda value: isinstance(value, int | float) and least <= value <= most
    if isinstance(condition, str | int | float):
        return lambda value: value == condition
    if isinstance(condition, Sequence):
        wanted = list(condition)
        return lambda value: value in wanted
    raise ConfigError(f"the filter of {name!r} is {condition!r:.60}, expected a value, several, or bounds")
