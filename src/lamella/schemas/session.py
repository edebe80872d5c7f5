"""The JSON body of a browser's session."""

from typing import Annotated

from msgspec import Meta

from lamella.schemas.body import Moment, VersionedBody


class SessionJson(VersionedBody, frozen=True, kw_only=True):
    """Whether a login is needed, and who is logged in."""

    needed: Annotated[bool, Meta(description="Whether this server needs an access token.")]
    active: Annotated[bool, Meta(description="Whether requests of this client are let in now.")]
    name: Annotated[str | None, Meta(description="Name of the access token; null without one.")]
    owner: Annotated[
        str | None, Meta(description="Owner whose conversations the token can read; empty for all conversations.")
    ]
    scope: Annotated[str | None, Meta(description="`read`, `chat` or `admin`; null if it is not let in.")]
    expires: Annotated[Moment | None, Meta(description="When the session ends; null without one.")]
