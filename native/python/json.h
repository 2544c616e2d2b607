// JSON as Python's module json reads and writes it, for what is usual: the rest is left to that module.
#pragma once

#include "python.h"

/** Bytes that grow; `size` is what is allocated. */
struct buffer {
  char *bytes;
  size_t filled, size;
};

/** Makes room for `more` bytes. Ends the process where there is no memory. */
void buffer_reserve(struct buffer *buffer, size_t more);

/**
 * The value of a JSON text, as json.loads reads it; NULL, without an exception, for a text that is for json.loads itself:
 * \u escapes, integers of 19 digits and more, NaN, deep nesting, anything invalid.
 */
PyObject *json_read(const char *text, size_t length);

/**
 * Adds a value to `buffer` as json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")) writes it. 0,
 * without an exception, for a value that is for json itself: other types and subclasses, keys that are no text, surrogates,
 * NaN, deep nesting.
 */
int json_write(struct buffer *buffer, PyObject *value);
