"""Text recognition on the CPU: reads the lines of text in a picture.

Parameter `image` is a picture (PNG, JPEG, ...) in base64. The packages come from the annotation `requirements`;
the models ship inside rapidocr, so nothing is downloaded at run time.
"""

import base64
import binascii
import io

import numpy
from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError
from rapidocr import RapidOCR

engine = None


def load():
    """Loads the models, once per container."""
    global engine
    if engine is None:
        engine = RapidOCR(params={"Global.log_level": "error"})
    return engine


def rehearse():
    """Loads the models and reads a picture of its own: what is made at first use no caller waits for."""
    picture = Image.new("RGB", (800, 600), "white")
    for line in range(8):
        text = "Rehearsal, line %d: 0123456789" % line
        ImageDraw.Draw(picture).text((40, 40 + 64 * line), text, fill="black", font=ImageFont.load_default(32))
    load()(numpy.asarray(picture))


def main(args):
    try:
        picture = Image.open(io.BytesIO(base64.b64decode(args["image"], validate=True))).convert("RGB")
    except KeyError:
        return {"error": "Parameter 'image' is missing: a picture in base64."}
    except (TypeError, binascii.Error, UnidentifiedImageError) as error:
        return {"error": "Parameter 'image' is not a picture in base64: %s" % error}
    found = load()(numpy.asarray(picture)[:, :, ::-1])
    lines = [
        {"text": text, "confidence": round(float(score), 4)} for text, score in zip(found.txts or (), found.scores or ())
    ]
    return {"text": "\n".join(line["text"] for line in lines), "lines": lines}
