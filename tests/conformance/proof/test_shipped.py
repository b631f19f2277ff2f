"""What the solver cannot exhaust of the shipped decisions is gone through text by text."""

import itertools

import pytest

from counterfoil_conformance.proof.shipped import RULES

ALPHABET = (*"019+-.,ex_'/:a\t\n\x00 ٣²１é\ud800",)
HUGE = "9" * 5000


def meant(text: str) -> int | None:
    """The value of an optionally signed decimal integer, digit by digit; None for other texts."""
    sign, digits = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if digits == "" or any(letter not in "0123456789" for letter in digits):
        return None
    value = 0
    for letter in digits:
        value = value * 10 + "0123456789".index(letter)
    return -value if sign == "-" else value


def parsed(text: str) -> int | None:
    try:
        return RULES.parse_wait_ms(text)
    except ValueError:
        return None


def test_every_short_text_is_read_whole_or_refused():
    texts = [
        "".join(letters) for n in range(5) for letters in itertools.product(ALPHABET, repeat=n)
    ]
    assert len(texts) > 200_000
    for text in texts:
        assert parsed(text) == meant(text), repr(text)


@pytest.mark.parametrize("text", ["1" * 18, "0" * 40 + "7", "-" + "1" * 18, "+0", "-0"])
def test_long_texts_mean_what_they_say(text):
    assert parsed(text) == meant(text)


@pytest.mark.parametrize(("text", "budget_ms"), [(HUGE, 300_000), ("-" + HUGE, 30_000)])
def test_a_number_of_any_length_is_capped_and_never_wrapped(text, budget_ms):
    assert RULES.capped_wait_ms(RULES.parse_wait_ms(text)) == budget_ms
