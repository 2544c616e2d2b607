// Fat binaries: what nvcc packs into a program, several forms of the same code. Their layout is not documented; the fields
// that are read here are those that public tools which take them apart agree on.
#include "fatbin.h"

#include <stddef.h>
#include <string.h>

enum { FATBIN_MAGIC = 0xba55ed50, KIND_PTX = 1, COMPRESSED = 0x2000 };

struct header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes; // Of what follows.
};

struct part {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;
  uint32_t compressed_bytes, unused;
  uint16_t minor, major;
  uint32_t architecture, name_offset, name_bytes;
  uint64_t flags;
};

bool is_machine_code(const void *image) {
  static const unsigned char elf[] = {0x7f, 'E', 'L', 'F'};
  uint32_t magic;
  memcpy(&magic, image, sizeof magic);
  return memcmp(image, elf, sizeof elf) == 0 || magic == FATBIN_MAGIC;
}

const char *text_in_fatbin(const void *image, uint64_t *length) {
  struct header header;
  memcpy(&header, image, sizeof header);
  if (header.magic != FATBIN_MAGIC) return NULL;
  const char *at = (const char *)image + header.header_bytes, *end = at + header.bytes;
  while (end - at >= (ptrdiff_t)sizeof(struct part)) {
    struct part part;
    memcpy(&part, at, sizeof part);
    if (part.header_bytes < sizeof part || part.bytes > (uint64_t)(end - at) - part.header_bytes) return NULL;
    if (part.kind == KIND_PTX && (part.flags & COMPRESSED) == 0) {
      *length = part.bytes;
      return at + part.header_bytes;
    }
    at += part.header_bytes + part.bytes;
  }
  return NULL;
}
