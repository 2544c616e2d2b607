"""Text recognition on the CPU: reads the lines of text in a picture.

Parameter `image` is a picture (PNG, JPEG, ...) in base64. The packages come from the annotation `requirements`;
the models ship inside rapidocr, so nothing is downloaded at run time.
"""

import base64
import binascii
import io

import numpy
from PIL import Image, UnidentifiedImageError
from rapidocr import RapidOCR

engine = None


def load():
    """Loads the models, once per container."""
    global engine
    if engine is None:
        engine = RapidOCR(params={"Global.log_level": "error"})
    return engine


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
