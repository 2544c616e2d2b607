"""Draws sample.png, a picture of known text for tests: make-sample.py TARGET. Needs Pillow 10.1 or newer."""

import sys

from PIL import Image, ImageDraw, ImageFont

LINES = ["Functions on GPU servers", "Invoice 2024-0815", "Total: 1,234.50 EUR"]

picture = Image.new("L", (720, 260), 255)
draw = ImageDraw.Draw(picture)
font = ImageFont.load_default(size=44)
for row, line in enumerate(LINES):
    draw.text((40, 30 + 70 * row), line, fill=0, font=font)
picture.save(sys.argv[1], optimize=True)
