"""G4 and G5: items lost, mixed up or misjudged."""

import time

from strangers.answers import Answers
from strangers.book import Book
from strangers.faults import fault
from strangers.model import Item, Model
from strangers.workers import Pool


class _Items(Pool):
    """Changes the items of an envelope."""

    def items(self, items):
        return items

    def envelope(self, job, items, took_ms):
        envelope = super().envelope(job, items, took_ms)
        return {**envelope, "results": self.items(envelope["results"])}


@fault("g4-drops-last", "G4 G5")
class _(_Items):
    """Of several items the last is missing."""

    def items(self, items):
        return items[: max(1, len(items) - 1)]


@fault("g4-reversed", "G4")
class _(_Items):
    """The items are in reverse order."""

    def items(self, items):
        return items[::-1]


@fault("g4-three-reversed", "G4")
class _(_Items):
    """Three items and more are in reverse order."""

    def items(self, items):
        return items[::-1] if len(items) > 2 else items


@fault("g4-fine-first", "G4", full=True)
class _(_Items):
    """The items that succeeded come first."""

    def items(self, items):
        return sorted(items, key=lambda item: item["status"] != 0)


@fault("g4-failed-has-data", "G4")
class _(_Items):
    """A failed item has data."""

    def items(self, items):
        return [item if item["status"] == 0 else {**item, "data": {}} for item in items]


@fault("g4-status-always-0", "G4 G5")
class _(_Items):
    """A failed item has status 0."""

    def items(self, items):
        return [{**item, "status": 0} for item in items]


@fault("g4-no-status", "G4 G1 H13")
class _(_Items):
    """The items have no status."""

    def items(self, items):
        return [{"data": item["data"]} for item in items]


@fault("g4-status-text", "G4 G1 H13")
class _(_Items):
    """An item's status is a word."""

    def items(self, items):
        return [{**item, "status": "failed" if item["status"] else "ok"} for item in items]


@fault("g4-fine-is-null", "G4 G1")
class _(_Items):
    """A successful item's data is null when another failed."""

    def items(self, items):
        failed = any(item["status"] for item in items)
        return [{**item, "data": None} for item in items] if failed else items


@fault("g4-three-at-most", "G4", full=True)
class _(_Items):
    """Only the first three images are looked at."""

    def items(self, items):
        return items[:3]


@fault("g4-equal-images-merge", "G4")
class _(_Items):
    """Equal images give one item."""

    def items(self, items):
        return [item for index, item in enumerate(items) if item not in items[:index]]


class _Scratch(Model):
    """Concurrent runs share a scratch variable."""

    window_s = 0.0

    def data(self, job, raw):
        self.scratch = super().data(job, raw)
        time.sleep(self.window_s)
        return self.scratch


@fault("g4-shared-scratch", "G4")
class _(_Scratch):
    """Concurrent runs share a scratch variable for 5 ms."""

    window_s = 0.005


@fault("g4-shared-scratch-tight", "G4", full=True)
class _(_Scratch):
    """Concurrent runs share a scratch variable for a fraction of a ms."""

    window_s = 0.0003


@fault("g4-cached-by-image", "G4 Q2")
class _(Model):
    """A result is cached by its image, whatever the params say."""

    def data(self, job, raw):
        cache = self.__dict__.setdefault("cache", {})
        return cache.setdefault(raw, super().data(job, raw))


@fault("g4-cached-by-name", "G4")
class _(Pool):
    """A request whose `req_id` was there before gets the data of that one."""

    def envelope(self, job, items, took_ms):
        envelope = super().envelope(job, items, took_ms)
        seen = self.__dict__.setdefault("seen", {})
        results = seen.setdefault(job.task_id, envelope["results"])
        return {**envelope, "results": results}


@fault("g5-infer-all-failed-is-partial", "G5 H11")
class _(Answers):
    """A blocking call all of whose items failed says `partial`."""

    def inferred(self, view):
        response = super().inferred(view)
        if view.state == "failed" and response.payload.get("results"):
            response.payload = {**response.payload, "partial": True}
        return response


@fault("g4-infer-fine-only", "G4 G5")
class _(Answers):
    """A blocking call leaves out the items that failed."""

    def inferred(self, view):
        response = super().inferred(view)
        if response.payload.get("partial"):
            kept = [item for item in response.payload["results"] if item["status"] == 0]
            response.payload = {**response.payload, "results": kept}
        return response


@fault("g4-neighbours-swap", "G4 G1 R6 Q2")
class _(Book):
    """Two jobs that end within 30 ms swap their results."""

    last = None

    def publish(self, job, state, error, result):
        super().publish(job, state, error, result)
        if state != "done" or not job.counted:
            return
        last, self.last = self.last, job
        if last is not None and job.completed_ms - last.completed_ms < 30:
            mine, theirs = job.result["results"], last.result["results"]
            job.result = {**job.result, "results": theirs}
            last.result = {**last.result, "results": mine}
            self.last = None


@fault("g5-never-partial", "G5")
class _(Pool):
    """`partial` is always false."""

    def partial(self, items):
        return False


@fault("g5-always-partial", "G5")
class _(Pool):
    """`partial` is always true."""

    def partial(self, items):
        return True


@fault("g5-partial-by-first", "G5")
class _(Pool):
    """`partial` looks at the first item only."""

    def partial(self, items):
        return items[0].status != 0


@fault("g5-all-failed-is-done", "G5 T5 S6")
class _(Pool):
    """A job all of whose items failed is done."""

    def report(self, job, items, took_ms):
        if self.succeeded(items) or not job.counted:
            super().report(job, items, took_ms)
        else:
            self.book.end(job, "done", None, self.envelope(job, items, took_ms))


@fault("g5-last-item-decides", "G5")
class _(Pool):
    """A job is failed when its last item is, else done."""

    def report(self, job, items, took_ms):
        if job.counted and items[-1].status:
            self.book.end(job, "failed", self.failure(items))
        else:
            super().report(job, items, took_ms)


@fault("g5-partial-is-running", "G5 S9 T6 A11 W2")
class _(Pool):
    """A partly failed job is never reported: the budget ends it."""

    def report(self, job, items, took_ms):
        if not (job.counted and self.partial(items)):
            super().report(job, items, took_ms)


@fault("g5-first-failure-stops", "G5 G4")
class _(Model):
    """After the first failed image the rest are not run, and count as failed."""

    def run(self, job):
        items = []
        for image in job.work.images:
            stopped = items and items[-1].status
            items.append(Item(9, None, "skipped") if stopped else self.item(job, image))
        return items
