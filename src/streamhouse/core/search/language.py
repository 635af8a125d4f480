"""The language of conditions: `value.amount > 3 and not key startswith "test-"`. It is read into a tree, of so many
parts and no more, and nothing of it is ever run as a program."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, NoReturn

from streamhouse.core.search.conditions import COMPARISONS, All, Comparison, Condition, Literal, Not, OneOf, Operand
from streamhouse.core.search.fields import FIELD_PATTERN, Field, field_of
from streamhouse.core.search.kinds import can_compare, kinds_of, name_of
from streamhouse.core.search.quoted import text_in
from streamhouse.model.errors import InvalidInput

MAX_LENGTH = 1_000
MAX_COMPARISONS = 32
MAX_DEPTH = 16
_TOKEN = re.compile(
    rf"""\s*(?:
        (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<string>"(?:[^"\\]|\\.)*"|'[^']*')
      | (?P<field>{FIELD_PATTERN})
      | (?P<sign>==|!=|<=|>=|&&|\|\||[=<>!()])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_SAME_AS = {"=": "==", "&&": "and", "||": "or", "!": "not"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_WORDS = {"and", "or", "not", *_CONSTANTS, *(name for name in COMPARISONS if name.isalpha())}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_TEXTS = ("contains", "startswith")
_EXAMPLE = 'as in: value.amount > 3 and key == "alice"'


class _Token(NamedTuple):
    """`kind` is a name of `_TOKEN`, or `word`."""

    kind: str
    text: str
    at: int


def condition_of(text: str) -> Condition:
    """InvalidInput says where it is wrong, by the number of the character."""
    if len(text) > MAX_LENGTH:
        raise InvalidInput(f"a condition of {len(text)} characters is too long", hint=f"up to {MAX_LENGTH}")
    return _Parser(text).whole()


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while not tokens or tokens[-1].kind != "end":
        found = _TOKEN.match(text, at)
        if found is None:
            begin = at + len(text[at:]) - len(text[at:].lstrip())
            what = "a text without its end" if text[begin] in "\"'" else f"{text[begin]!r} means nothing here"
            raise InvalidInput(f"character {begin + 1}: {what}", hint=_EXAMPLE)
        kind = str(found.lastgroup)
        word = found[kind]
        is_word = kind == "field" and word in _WORDS
        tokens.append(_Token("word" if is_word else kind, _SAME_AS.get(word, word), found.start(kind)))
        at = found.end()
    return tokens


class _Parser:
    """By recursive descent: `or` binds least, then `and`, then `not`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._comparisons = 0
        self._depth = 0

    def whole(self) -> Condition:
        found = self._either()
        if self._token.kind != "end":
            self._fail("and, or, or the end")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> str | None:
        token = self._token
        if token.kind in ("word", "sign") and token.text in texts:
            self._next += 1
            return token.text
        return None

    def _either(self) -> Condition:
        conditions = [self._both()]
        while self._take("or"):
            conditions.append(self._both())
        return conditions[0] if len(conditions) == 1 else OneOf(tuple(conditions))

    def _both(self) -> Condition:
        conditions = [self._one()]
        while self._take("and"):
            conditions.append(self._one())
        return conditions[0] if len(conditions) == 1 else All(tuple(conditions))

    def _one(self) -> Condition:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidInput(
                f"character {self._token.at + 1}: more than {MAX_DEPTH} parentheses and nots in one another",
                hint="say it more simply",
            )
        if self._take("not"):
            found: Condition = Not(self._one())
        elif self._take("("):
            found = self._either()
            if not self._take(")"):
                self._fail("and, or, or )")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Condition:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise InvalidInput(
                f"character {self._token.at + 1}: too many comparisons", hint=f"up to {MAX_COMPARISONS} of them"
            )
        begin = self._token
        left = self._operand()
        sign = self._take(*COMPARISONS)
        if sign is None and isinstance(left, Literal):
            self._fail(f"a comparison such as == behind {begin.text[:40]}")
        other = self._token
        right = Literal(True) if sign is None else self._operand()
        operator = sign or "=="
        left, right = _beside(left, operator, right, begin), _beside(right, operator, left, other)
        if not can_compare(left, operator, right):
            what = self._text[begin.at : self._token.at].strip()
            sides = f"{name_of(kinds_of(left))} with {name_of(kinds_of(right))}"
            raise InvalidInput(
                f"character {begin.at + 1}: {what[:80]} compares {sides}, which is the same for every record",
                hint="say what it is compared with" if sign is None else _hint(sign),
            )
        return Comparison(left=left, operator=operator, right=right)

    def _operand(self) -> Operand:
        token = self._token
        if token.kind == "field":
            self._next += 1
            return field_of(token.text, token.at)
        if token.kind in ("number", "string") or token.text in _CONSTANTS:
            self._next += 1
            return Literal(_constant(token))
        self._fail("a field such as value.amount, a number or a text in quotes")

    def _fail(self, wanted: str) -> NoReturn:
        token = self._token
        found = "the end" if token.kind == "end" else repr(token.text[:40])
        raise InvalidInput(f"character {token.at + 1}: wanted {wanted}, not {found}", hint=_EXAMPLE)


def _hint(operator: str) -> str:
    if operator in _OF_TEXTS:
        return f'write texts in quotes, as in value {operator} "3"'
    if operator in ("==", "!="):
        return "write numbers without quotes, and texts in quotes"
    return "numbers are less or more than numbers, texts than texts, and nothing else is"


def _constant(token: _Token) -> str | int | float | bool | None:
    if token.kind == "word":
        return _CONSTANTS[token.text]
    if token.kind == "number":
        if token.text.lstrip("-").isdigit():
            return int(token.text)
        number = float(token.text)
        if math.isinf(number):
            raise InvalidInput(f"character {token.at + 1}: {token.text[:40]} is too large", hint="a smaller number")
        return number
    return token.text[1:-1] if token.text.startswith("'") else text_in(token.text, token.at)


def _beside(operand: Operand, operator: str, other: Operand, at: _Token) -> Operand:
    """A key or value as a whole is text beside a text, and beside a number, true or false what it says as JSON, except
    that it contains texts. A text beside a time is one, too."""
    if isinstance(operand, Field) and not operand.parts and operand.root in ("key", "value"):
        is_json = isinstance(other, Literal) and isinstance(other.value, int | float)
        return replace(operand, is_json=is_json and operator not in _OF_TEXTS)
    is_time = isinstance(other, Field) and other.root == "timestamp" and operator not in _OF_TEXTS
    if is_time and isinstance(operand, Literal) and isinstance(operand.value, str):
        return Literal(_time_ms(operand.value, at))
    return operand


def _time_ms(text: str, at: _Token) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"character {at.at + 1}: {text[:40]!r} is not a time",
            hint='milliseconds since 1970, or a date and a time as in "2026-01-31T12:00:00Z"',
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)
