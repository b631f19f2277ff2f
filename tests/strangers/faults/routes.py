"""H6: what is left of the routes when they are disabled."""

from strangers.app import App
from strangers.faults import fault


class _Disabled(App):
    """Something is left of the routes when they are disabled."""

    def left(self, head, route):
        return None

    def refuse_path(self, head, route):
        if self.is_async(route):
            return self.left(head, route)
        return super().refuse_path(head, route)


@fault("h6-reads-are-405", "H6", should=True, async_enabled=False)
class _(_Disabled):
    """Disabled routes are known to other methods: 405."""

    def left(self, head, route):
        if (route.kind == "submit") != (head.method == "POST"):
            return self.answers.wrong_method("GET")
        return self.answers.no_path()


@fault("h6-503", "H6 E5", async_enabled=False)
class _(_Disabled):
    """Disabled routes are 503."""

    def left(self, head, route):
        return self.answers.error(503, "disabled", "disabled")


@fault("h6-only-submit", "H6", async_enabled=False)
class _(_Disabled):
    """Only the submit is disabled: a wait on nothing takes a timeout apart first."""

    def left(self, head, route):
        if route.kind == "wait":
            return self.answers.bad_timeout(422)
        return self.answers.no_path()


@fault("h6-admits", "H6 A4", async_enabled=False)
class _(_Disabled):
    """Disabled routes work."""


@fault("h6-body-first", "H6 H12", async_enabled=False)
class _(_Disabled):
    """A disabled submit looks at the body before it says 404."""

    def left(self, head, route):
        if route.kind == "submit" and head.method == "POST":
            return self.refuse_media(head, route)
        return self.answers.no_path()

    def on_submit(self, request, route):
        response = super().on_submit(request, route)
        return response if response.status == 422 else self.answers.no_path()


@fault("h6-404-before-401", "H6 K1 H12", async_enabled=False, token="s3cret")
class _(App):
    """Disabled routes are 404 for whoever asks, with or without the token."""

    def refuse_stranger(self, head, route):
        return None if self.is_async(route) else super().refuse_stranger(head, route)
