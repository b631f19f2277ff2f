"""W4, W5, W10: the budget of a wait, and how it is written."""

import re

from strangers.answers import Answers
from strangers.app import App
from strangers.book import LIVE
from strangers.faults import fault
from strangers.fronts import ThreadedFront
from strangers.messages import Response


class _Budget(ThreadedFront):
    """Sleeps for another time than it was told."""

    def other(self, seconds):
        return seconds

    def sleep(self, done, seconds):
        return done.wait(None if seconds is None else self.other(seconds))


@fault("w4-fifth-too-early", "W4 W5")
class _(_Budget):
    """Waits end after 80 % of their budget."""

    def other(self, seconds):
        return seconds * 0.8


@fault("w4-30-ms-too-early", "W4")
class _(_Budget):
    """Waits end 30 ms before their budget."""

    def other(self, seconds):
        return max(0.0, seconds - 0.03)


@fault("w4-too-late", "W4 W5")
class _(_Budget):
    """Waits end 900 ms after their budget."""

    def other(self, seconds):
        return seconds + 0.9


class _Expired(App):
    """Answers otherwise when the budget ran out."""

    def after_wait(self, job):
        if job.state in LIVE:
            return self.expired(job)
        return super().after_wait(job)

    def expired(self, job):
        return super().after_wait(job)


@fault("w4-504", "W4 E5")
class _(_Expired):
    """A wait whose budget runs out is a 504."""

    def expired(self, job):
        return self.answers.error(504, f"{job.id} is {job.state}", job.id)


@fault("w4-408", "W4")
class _(_Expired):
    """A wait whose budget runs out is a 408."""

    def expired(self, job):
        return self.answers.error(408, f"{job.id} is {job.state}", job.id)


@fault("w4-204", "W4")
class _(_Expired):
    """A wait whose budget runs out is a 204."""

    def expired(self, job):
        return Response(204)


@fault("w4-ends-the-job", "W4 S4 S5 W6 G1 G2 W2 T6")
class _(_Expired):
    """A wait whose budget runs out ends the job as a timeout."""

    def expired(self, job):
        self.book.end(job, "timeout", "waited too long")
        return self.answers.status(self.book.view(job))


@fault("w4-says-timeout", "W4 S5 S6 S1 S4 R6 W6 G2 A5")
class _(_Expired):
    """A wait whose budget runs out says `timeout`, though the job runs on."""

    def expired(self, job):
        view = self.book.view(job)._replace(state="timeout", error="the wait timed out")
        return self.answers.status(view)


@fault("w4-says-error", "W4 S6")
class _(_Expired):
    """A wait whose budget runs out carries an error."""

    def expired(self, job):
        return self.answers.status(self.book.view(job)._replace(error="the wait timed out"))


@fault("w4-says-pending", "W4 S5")
class _(_Expired):
    """A wait whose budget runs out always says `pending`."""

    def expired(self, job):
        return self.answers.status(self.book.view(job)._replace(state="pending"))


class _Reading(App):
    """Reads the timeout in another way."""

    def wait_budget_ms(self, text):
        other = None if text is None else self.other(text)
        return super().wait_budget_ms(text) if other is None else other

    def other(self, text):
        return None

    def number(self, text):
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,4000}", text) else None


@fault("w5-seconds", "W5 W4")
class _(_Reading):
    """`timeout` is taken for seconds."""

    def other(self, text):
        number = self.number(text)
        return min(number * 1000, 300_000) if number and number > 0 else None


@fault("w5-absent-is-now", "W5 W4 W2 W6 H7")
class _(App):
    """Without a timeout the answer comes at once."""

    def wait_budget_ms(self, text):
        return 0 if text is None else super().wait_budget_ms(text)


@fault("w5-absent-is-a-second", "W5 W4 W2", timeout_ms=4000)
class _(App):
    """Without a timeout the wait ends after one second."""

    def wait_budget_ms(self, text):
        return 1000 if text is None else super().wait_budget_ms(text)


@fault("w5-absent-is-three-seconds", "W5 W4 W2", full=True, timeout_ms=8000)
class _(App):
    """Without a timeout the wait ends after three seconds."""

    def wait_budget_ms(self, text):
        return 3000 if text is None else super().wait_budget_ms(text)


@fault("w5-capped-at-half-a-second", "W5 W4 W2 W6")
class _(_Reading):
    """No wait is longer than half a second."""

    def other(self, text):
        number = self.number(text)
        return min(number, 500) if number and number > 0 else None


@fault("w5-over-the-cap-is-now", "W5 W4 W2")
class _(_Reading):
    """A timeout above the cap is answered at once."""

    def other(self, text):
        number = self.number(text)
        return 0 if number and number > 300_000 else None


class _Wrapping(_Reading):
    bits = 32

    def other(self, text):
        number = self.number(text)
        if not number or number < 0:
            return None
        half = 1 << (self.bits - 1)
        wrapped = (number + half) % (2 * half) - half
        return min(wrapped, 300_000) if wrapped > 0 else 0


@fault("w5-wraps-at-31-bits", "W5 W4 W2")
class _(_Wrapping):
    """The timeout is a signed number of 32 bits."""


@fault("w5-wraps-at-63-bits", "W5 W4 W2")
class _(_Wrapping):
    """The timeout is a signed number of 64 bits."""

    bits = 64


@fault("w5-wraps-at-32-bits-unsigned", "W5 W4 W2")
class _(_Reading):
    """The timeout is an unsigned number of 32 bits."""

    def other(self, text):
        number = self.number(text)
        return min(number % 2**32, 300_000) if number and number > 0 else None


@fault("w5-huge-is-500", "W5 E5")
class _(App):
    """A timeout of thousands of digits is a 500."""

    def wait_budget_ms(self, text):
        if text and len(text) > 4300:
            return self.answers.error(500, "exceeds the limit for integers", "no")
        return super().wait_budget_ms(text)


@fault("w5-huge-is-422", "W5")
class _(_Reading):
    """A timeout of 64 bits or more is refused."""

    def other(self, text):
        number = self.number(text)
        return self.answers.bad_timeout(422) if number and number >= 2**63 else None


@fault("w5-negative-is-500", "W5 E5")
class _(App):
    """A negative timeout is a 500."""

    def wait_budget_ms(self, text):
        if text and text.startswith("-"):
            return self.answers.error(500, "timeout must not be negative", "no")
        return super().wait_budget_ms(text)


@fault("w5-negative-is-positive", "W5 W4")
class _(_Reading):
    """The sign of a timeout is dropped."""

    def other(self, text):
        number = self.number(text)
        return min(-number, 300_000) if number and number < 0 else None


@fault("w5-zero-is-a-while", "W5 W4")
class _(App):
    """A timeout of 0 waits for 600 ms."""

    def zero_budget_ms(self):
        return 600


@fault("w10-reads-in-part", "W10 W4 W5", should=True)
class _(_Reading):
    """`150ms` is read as 150."""

    def other(self, text):
        match = re.match(r"[0-9]+(?=[^0-9])", text)
        return min(int(match[0]), 300_000) if match else None


@fault("w10-reads-floats", "W10 W4 W5", should=True)
class _(_Reading):
    """`1e2` is read as 100, `99.9` as 99."""

    def other(self, text):
        try:
            return None if self.number(text) is not None else min(int(float(text)), 300_000)
        except (ValueError, OverflowError):
            return None


@fault("w10-reads-pythonic", "W10 W4 W5", should=True, full=True)
class _(_Reading):
    """`1_00`, ` 100 ` and foreign digits are numbers, as they are for int()."""

    def other(self, text):
        try:
            return None if self.number(text) is not None else min(int(text), 300_000)
        except ValueError:
            return None


@fault("w10-reads-hex", "W10 W4 W5", should=True, full=True)
class _(_Reading):
    """`0x64` is read as 100."""

    def other(self, text):
        hexadecimal = re.fullmatch(r"0x([0-9a-f]+)", text)
        return min(int(hexadecimal[1], 16), 300_000) if hexadecimal else None


@fault("w10-empty-is-zero", "W10 W5", should=True)
class _(_Reading):
    """An empty timeout is 0 and answered at once."""

    def other(self, text):
        return 0 if text == "" else None


@fault("w10-no-pointer", "W10 H13 E2", should=True)
class _(Answers):
    """An odd timeout is refused without a pointer."""

    def bad_timeout(self, status):
        return self.error(status, "bad timeout", "bad timeout")


@fault("w10-400", "W10", should=True)
class _(Answers):
    """An odd timeout is a 400."""

    def bad_timeout(self, status):
        return super().bad_timeout(400)


@fault("w10-odd-is-500", "W10 W5 E5")
class _(App):
    """A timeout that is no number is a 500."""

    def wait_budget_ms(self, text):
        if text is not None and not re.fullmatch(r"[+-]?[0-9]+", text):
            return self.answers.error(500, f"invalid literal: {text!r}", "no")
        return super().wait_budget_ms(text)


@fault("w5-default-is-40-s", "W5 W4", full=True, timeout_ms=45_000)
class _(App):
    """Without a timeout the wait ends after 40 s."""

    def wait_budget_ms(self, text):
        return 40_000 if text is None else super().wait_budget_ms(text)


@fault("w5-no-cap", "W5 W4", full=True, timeout_ms=400_000, hang_ms=390_000)
class _(_Reading):
    """The cap is a quarter of an hour."""

    def other(self, text):
        number = self.number(text)
        return min(number, 900_000) if number and number > 300_000 else None
