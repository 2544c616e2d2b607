#define _GNU_SOURCE
#include "environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 16, LEAST_BYTES = 128 };

// The C library's setenv never frees a value: one that differs from run to run would be a leak.
static struct place {
  char *text; // NAME=value, as it stands in `environ`.
  size_t size;
} places[PLACES];

static bool is_of_run(const char *pair) { return strncmp(pair, "__OW_", 5) == 0; }

/** The place of a variable, or a free one; NULL if all are taken. `name`: the length of the name with its `=`. */
static struct place *place_of(const char *pair, size_t name) {
  for (struct place *place = places; place < places + PLACES; place++)
    if (place->text == NULL || strncmp(place->text, pair, name) == 0) return place;
  return NULL;
}

static bool is_in_environment(const char *text) {
  for (char **variable = environ; variable && *variable; variable++)
    if (*variable == text) return true;
  return false;
}

static void set_by_library(const char *pair, size_t name) {
  char *text = strndup(pair, name - 1);
  if (!text || setenv(text, pair + name, 1) != 0) perror("setenv");
  free(text);
}

void gw_set_variable(const char *pair) {
  const char *equals = strchr(pair, '=');
  if (!equals || equals == pair) return;
  size_t name = (size_t)(equals - pair) + 1, size = strlen(pair) + 1;
  struct place *place = is_of_run(pair) ? place_of(pair, name) : NULL;
  if (!place) {
    set_by_library(pair, name);
    return;
  }
  bool fits = place->text && size <= place->size;
  if (!fits) {
    // Twice as much, so that a value that grows from run to run takes few of them. The last byte stays zero: a thread that
    // reads meanwhile finds an end.
    size_t wanted = size <= LEAST_BYTES ? LEAST_BYTES : 2 * size;
    char *text = calloc(1, wanted + 1);
    if (!text) {
      perror("setenv");
      return;
    }
    *place = (struct place){text, wanted};
  }
  memcpy(place->text, pair, size);
  if (!is_in_environment(place->text) && putenv(place->text) != 0) perror("putenv");
}
