"""Settings that check themselves."""

import math
from dataclasses import asdict, dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.base import (
    bounded,
    changed_settings,
    check_fields,
    check_number,
    check_option,
    check_whole_number,
    refuse_unknown_keys,
    setting_changes,
    settings_from_dict,
)
from elmokit.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Head:
    rnn: int | None = bounded(100, least=1)
    dropout: float = bounded(0.5, least=0, below=1)

    def __post_init__(self):
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Settings:
    epochs: int
    kind: Literal["a", "b"] = "a"
    shuffle: bool = True
    name: str = "anything"
    head: Head = field(default_factory=Head)

    def __post_init__(self):
        check_fields(self)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 1.5}, "epochs must be a whole number, found 1.5"),
        ({"epochs": True}, "epochs must be a whole number, found True"),
        ({"epochs": 1, "kind": "c"}, "kind must be one of a, b, found 'c'"),
        ({"epochs": 1, "shuffle": 1}, "shuffle must be true or false, found 1"),
    ],
)
def test_each_field_is_checked(values, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        Settings(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rnn": 0}, "rnn must be a whole number of at least 1, found 0"),
        ({"rnn": "5"}, "rnn must be a whole number of at least 1, found '5'"),
        ({"dropout": 1}, "dropout must be a finite number of at least 0 and below 1, found 1"),
        ({"dropout": math.nan}, "dropout must be a finite number of at least 0 and below 1, found nan"),
    ],
)
def test_bounds(values, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        Head(**values)
    assert Head(rnn=None, dropout=0).rnn is None


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, ""),
        ({"least": 0, "most": 1}, " from 0 to 1"),
        ({"above": 0}, " above 0"),
        ({"above": 0, "most": 1}, " above 0 and at most 1"),
        ({"below": 2}, " below 2"),
    ],
)
def test_bounds_in_words(bounds, expected):
    with pytest.raises(ConfigError, match=f"^x must be a finite number{expected}, found inf$"):
        check_number("x", math.inf, **bounds)


@given(st.floats(allow_nan=True), st.integers(-3, 3), st.integers(-3, 3))
def test_a_number_is_accepted_if_it_is_within_the_bounds(value, least, most):
    for bounds, inside in [
        ({"least": least, "most": most}, least <= value <= most),
        ({"above": least, "below": most}, least < value < most),
    ]:
        try:
            check_number("x", value, **bounds)
        except ConfigError:
            assert not (inside and math.isfinite(value))
        else:
            assert inside


def test_single_values():
    check_whole_number("x", 3, least=3, most=3)
    check_option("x", "a", ["a", "b"])
    with pytest.raises(ConfigError, match=r"^x must be a whole number from 1 to 2, found 3$"):
        check_whole_number("x", 3, least=1, most=2)


class TestPlainData:
    def test_there_and_back(self):
        settings = Settings(epochs=3, head=Head(rnn=None))
        assert settings_from_dict(Settings, asdict(settings), "here") == settings
        assert settings_from_dict(Settings, {"epochs": 3, "head": {"rnn": None}}, "here") == settings

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            ([1], r"^here must be a table of settings, found \[1\]"),
            ({"epochs": 1, "kinds": "a"}, "^here: unknown setting 'kinds'; did you mean 'kind'?"),
            ({"epochs": 1, "xyz": "a"}, "^here: unknown setting 'xyz'; known are epochs, kind, shuffle"),
            ({"epochs": 1, "head": {"rrn": 1}}, "^here, head: unknown setting 'rrn'; did you mean 'rnn'?"),
            ({"epochs": 1, "head": {"rnn": 0}}, "^rnn must be a whole number"),
            ({}, "^here: .*missing .*'epochs'"),
        ],
    )
    def test_what_is_refused(self, data, message):
        with pytest.raises(ConfigError, match=message):
            settings_from_dict(Settings, data, "here")

    def test_known_keys_pass(self):
        refuse_unknown_keys(["a"], ["a", "b"], "here")


class TestChanges:
    def test_values_are_read_as_toml(self):
        changes = ["epochs=5", "head.rnn = none", "head.dropout=0.1", "shuffle=false", "kind=b", 'name="x=y"']
        expected = Settings(epochs=5, head=Head(rnn=None, dropout=0.1), shuffle=False, kind="b", name="x=y")
        assert changed_settings(Settings(epochs=1), changes) == expected
        assert changed_settings(expected, []) == expected

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ("epochs", "^expected NAME=VALUE or GROUP.NAME=VALUE, found 'epochs'"),
            ("head=1", "^expected NAME=VALUE or GROUP.NAME=VALUE, found 'head=1'"),
            ("epochs.x=1", "^settings: 'epochs' is a single value, found 'epochs.x=1'"),
            ("heads.rnn=1", "^settings: unknown setting 'heads'; did you mean 'head'?"),
            ("head.rrn=1", "^head: unknown setting 'rrn'; did you mean 'rnn'?"),
            ("epoch=1", "^settings: unknown setting 'epoch'; did you mean 'epochs'?"),
            ("head.rnn=0", "^rnn must be a whole number of at least 1, found 0"),
        ],
    )
    def test_what_is_refused(self, change, message):
        with pytest.raises(ConfigError, match=message):
            changed_settings(Settings(epochs=1), [change])

    def test_in_words(self):
        old, new = asdict(Settings(epochs=1)), asdict(Settings(epochs=2, head=Head(dropout=0.1)))
        assert setting_changes(old, new) == ["epochs is 2, was 1", "head.dropout is 0.1, was 0.5"]
        del old["epochs"]  # a setting that an older version did not have
        assert setting_changes(old, new) == ["head.dropout is 0.1, was 0.5"]
        assert setting_changes(new, new) == []
