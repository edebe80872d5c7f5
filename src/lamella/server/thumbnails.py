"""Thumbnails of pictures, so that a page with many pictures loads little.

``make_thumbnail`` returns a smaller picture, or None if the picture itself should be shown.
"""

from io import BytesIO

# Twice the pixels of the box in which the page shows a picture, for screens with small pixels.
THUMBNAIL_PIXELS = 384
THUMBNAIL_MEDIA_TYPE = "image/webp"
_QUALITY = 80
# Decoding takes memory by the pixel: 40 million take some 160 MB.
_MAX_PIXELS = 40_000_000


def make_thumbnail(data: bytes, *, width: int, height: int) -> bytes | None:
    """Return the picture in at most ``THUMBNAIL_PIXELS`` by as many pixels, as WebP without its metadata.

    None if it is not larger than that, too large to decode, or damaged. Of an animation it is the first frame.
    """
    if max(width, height) <= THUMBNAIL_PIXELS or width * height > _MAX_PIXELS:
        return None
    from PIL import Image, ImageOps  # imported late: most servers never show a picture

    try:
        with Image.open(BytesIO(data)) as picture:
            # The size in the header decides how much memory is taken, so it is checked as well.
            if picture.width * picture.height > _MAX_PIXELS:
                return None
            picture.draft("RGB", (THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
            small = ImageOps.exif_transpose(picture)
            small.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
            output = BytesIO()
            small.convert("RGBA" if small.has_transparency_data else "RGB").save(output, "WEBP", quality=_QUALITY)
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError):
        # Whoever sees the picture then sees what was sent, as its browser shows it.
        return None
    return output.getvalue()
