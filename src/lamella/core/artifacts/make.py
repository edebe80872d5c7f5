"""Making artifacts: the only way in, so that every one is normalised, hashed and named by its kind's rule."""

from collections.abc import Mapping, Sequence

from lamella.core.artifacts.embeds import embedded_images
from lamella.core.artifacts.kinds import KINDS, TEXT_KINDS, Embeds
from lamella.core.artifacts.model import Artifact, Image, Kind, Policy, Source, ToolDefinition
from lamella.core.text.content import canonical_json, encode_text, hash_bytes, hash_text, normalise
from lamella.errors import ArtifactError


def make_artifact(
    kind: Kind,
    *,
    text: str,
    source: Source,
    title: str = "",
    policy: Policy | None = None,
    images: Sequence[Image] = (),
) -> Artifact:
    """An artifact of any kind that has text of its own."""
    spec = KINDS[kind]
    if kind not in TEXT_KINDS:
        raise ArtifactError(
            f"A {kind} is not a text.",
            hint="Expand a folder or tag to its notes; make an image with `Image`.",
        )
    _check_names(title, source)
    text = normalise(text)
    return Artifact(
        id=spec.id_rule(source, text),
        kind=kind,
        title=title or default_title(source),
        text=text,
        hash=hash_text(text),
        source=source,
        recoverable=spec.recoverable,
        trust=spec.trust,
        policy=policy,
        images=tuple(images),
        has_images=spec.embeds is not Embeds.NONE and (bool(images) or ("![" in text and bool(embedded_images(text)))),
    )


def make_image(image: Image, *, title: str = "", path: str | None = None, url: str | None = None) -> Artifact:
    """A picture attached directly; its id is the hash of its bytes."""
    source = Source(path=path, url=url)
    _check_names(title, source)
    return Artifact(
        id=KINDS[Kind.IMAGE].id_rule(source, image.hash),
        kind=Kind.IMAGE,
        title=title or default_title(source) or "image",
        text="",
        hash=image.hash,
        source=source,
        recoverable=False,
        trust=KINDS[Kind.IMAGE].trust,
        images=(image,),
        has_images=True,
    )


# What each path begins with in a list of what is left out.
LISTED = "- "


def make_left_out(kind: Kind, *, name: str, text: str) -> Artifact:
    """What a folder or a tag did not bring because it did not fit: a line that says so, then a path on each line."""
    spec = KINDS[kind]
    source = Source(path=name) if spec.fields[0] == "path" else Source(query=name)
    _check_names("", source)
    text = normalise(text)
    return Artifact(
        id=spec.id_rule(source, text),
        kind=kind,
        title=name,
        text=text,
        hash=hash_text(text),
        # It came in by itself, as its notes did.
        source=Source(path=source.path, query=source.query, via=f"{kind}:{name}"),
        recoverable=spec.recoverable,
        trust=spec.trust,
    )


def make_tool_result(name: str, *, arguments: Mapping[str, object], output: str) -> Artifact:
    """A tool's call and its output: one artifact, so that neither can be lost without the other."""
    _check_tool(name)
    source = Source(tool=name, arguments=canonical_json(arguments))
    return make_artifact(Kind.TOOL, text=output, source=source, title=name)


def make_tool_definition(name: str, *, description: str, parameters: Mapping[str, object]) -> ToolDefinition:
    """A tool definition whose equal schemas are equal bytes."""
    _check_tool(name)
    definition = ToolDefinition(name=name, description=description, parameters=canonical_json(parameters))
    encode_text(definition.name + definition.description + definition.parameters)
    return definition


def make_image_value(data: bytes, *, media_type: str, width: int, height: int) -> Image:
    """A picture with its hash."""
    return Image(media_type=media_type, data=data, width=width, height=height, hash=hash_bytes(data))


def _check_tool(name: str) -> None:
    if not name.strip():
        raise ArtifactError("A tool has no name.", hint="Give it the `name` that the model calls it by.")


def _check_names(title: str, source: Source) -> None:
    """Titles and places are sent as well: what cannot be written as UTF-8 is refused here, not when it is counted."""
    for name in (title, source.path, source.url, source.query, source.tool, source.arguments, source.place):
        if name:
            encode_text(name)


def default_title(source: Source) -> str:
    """The file's name without its ending, else the URL, else nothing."""
    if source.path:
        name = source.path.rstrip("/").rsplit("/", 1)[-1]
        stem, dot, _ = name.rpartition(".")
        return stem if dot and stem else name
    return source.url or ""
