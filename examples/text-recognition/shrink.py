"""Shrinks a picture until its file has at most so many bytes: shrink.py SOURCE TARGET BYTES. Needs Pillow."""

import sys

from PIL import Image, ImageOps

source, target, most_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
picture = ImageOps.exif_transpose(Image.open(source)).convert("RGB")
side = min(max(picture.size), 3000)
while True:
    small = picture.copy()
    small.thumbnail((side, side))
    small.save(target, "JPEG", quality=85)
    with open(target, "rb") as file:
        size = len(file.read())
    if size <= most_bytes:
        break
    side = side * 4 // 5
