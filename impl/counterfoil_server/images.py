"""From base64 to an array of pixels, with no trust in what comes.

A few kilobytes of PNG can claim to be a picture of many gigapixels. The claimed size is therefore
looked at before a single pixel is decoded, the formats are few, and whatever the decoder says is
turned into one short message.
"""

import base64
import binascii
import io
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["BadImage", "read_image"]

_FORMATS: Final = ("PNG", "JPEG", "WEBP", "BMP")

Image.MAX_IMAGE_PIXELS = None  # the bound is ours, configured, and has a message of its own


class BadImage(Exception):
    """The image cannot be read; the message is fit for the client."""


def read_image(
    encoded: str, *, width: int, height: int, channels: int, max_pixels: int
) -> NDArray[Any]:
    """Decode, convert to 1 (grey) or 3 (RGB) channels, resize: uint8 of (height, width, channels).

    Raises BadImage.
    """
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise BadImage("is not valid base64") from None
    try:
        picture: Image.Image = Image.open(io.BytesIO(content), formats=_FORMATS)
    except Exception:
        raise BadImage(f"is not a picture in a format of {', '.join(_FORMATS)}") from None
    if picture.width * picture.height > max_pixels:
        raise BadImage(f"has more than {max_pixels} pixels")
    try:
        picture = picture.convert("L" if channels == 1 else "RGB")
        picture = picture.resize((width, height), Image.Resampling.BOX)
    except Exception:
        raise BadImage("is damaged and cannot be decoded") from None
    return np.asarray(picture, dtype=np.uint8).reshape(height, width, channels)
