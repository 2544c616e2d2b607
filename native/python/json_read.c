#include "json.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_DIGITS = 18, MAX_NUMBER = 64 };

struct reader {
  const char *at, *end;
  struct buffer text; // Of a string with escapes.
};

static PyObject *read_value(struct reader *reader, int depth);

static void skip_spaces(struct reader *reader) {
  while (reader->at < reader->end) {
    char c = *reader->at;
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    reader->at++;
  }
}

/** Takes a character if it comes next. */
static bool take(struct reader *reader, char wanted) {
  if (reader->at == reader->end || *reader->at != wanted) return false;
  reader->at++;
  return true;
}

/** The character that stands for the escape \c; 0: it is not read here. */
static char unescaped(char c) {
  switch (c) {
  case '"':
  case '\\':
  case '/':
    return c;
  case 'b':
    return '\b';
  case 'f':
    return '\f';
  case 'n':
    return '\n';
  case 'r':
    return '\r';
  case 't':
    return '\t';
  default:
    return 0;
  }
}

/** The rest of a string whose first `length` bytes have no escape. */
static PyObject *read_escaped(struct reader *reader, const char *start, size_t length) {
  struct buffer *text = &reader->text;
  text->filled = 0;
  buffer_reserve(text, (size_t)(reader->end - start));
  memcpy(text->bytes, start, length);
  text->filled = length;
  for (reader->at = start + length; reader->at < reader->end; reader->at++) {
    char c = *reader->at;
    if (c == '"') {
      reader->at++;
      return PyUnicode_DecodeUTF8(text->bytes, (ssize_t)text->filled, NULL);
    }
    if ((unsigned char)c < 0x20) return NULL;
    if (c == '\\') {
      if (++reader->at == reader->end || (c = unescaped(*reader->at)) == 0) return NULL;
    }
    text->bytes[text->filled++] = c;
  }
  return NULL;
}

/** A string, after its first quotation mark. */
static PyObject *read_string(struct reader *reader) {
  const char *start = reader->at;
  for (const char *at = start; at < reader->end; at++) {
    if (*at == '"') {
      reader->at = at + 1;
      return PyUnicode_DecodeUTF8(start, at - start, NULL);
    }
    if (*at == '\\') return read_escaped(reader, start, (size_t)(at - start));
    if ((unsigned char)*at < 0x20) return NULL;
  }
  return NULL;
}

static size_t digits(const char *at, const char *end) {
  const char *start = at;
  while (at < end && *at >= '0' && *at <= '9') at++;
  return (size_t)(at - start);
}

static PyObject *read_number(struct reader *reader) {
  const char *start = reader->at, *at = start, *end = reader->end;
  bool negative = at < end && *at == '-';
  if (negative) at++;
  const char *first = at;
  size_t whole = digits(at, end);
  if (whole == 0 || (whole > 1 && *first == '0')) return NULL;
  at += whole;
  bool real = false;
  if (at < end && *at == '.') {
    size_t count = digits(at + 1, end);
    if (count == 0) return NULL;
    at += 1 + count;
    real = true;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    at++;
    if (at < end && (*at == '+' || *at == '-')) at++;
    size_t count = digits(at, end);
    if (count == 0) return NULL;
    at += count;
    real = true;
  }
  reader->at = at;
  if (!real) {
    if (whole > MAX_DIGITS) return NULL;
    long long value = 0;
    for (size_t i = 0; i < whole; i++) value = value * 10 + (first[i] - '0');
    return PyLong_FromLongLong(negative ? -value : value);
  }
  char number[MAX_NUMBER + 1];
  size_t length = (size_t)(at - start);
  if (length > MAX_NUMBER) return NULL;
  memcpy(number, start, length);
  number[length] = '\0';
  double value = PyOS_string_to_double(number, NULL, NULL);
  return PyErr_Occurred() ? NULL : PyFloat_FromDouble(value);
}

static PyObject *read_object(struct reader *reader, int depth) {
  PyObject *object = PyDict_New();
  if (object == NULL) return NULL;
  skip_spaces(reader);
  if (take(reader, '}')) return object;
  for (;;) {
    skip_spaces(reader);
    PyObject *key = take(reader, '"') ? read_string(reader) : NULL;
    if (key == NULL) break;
    skip_spaces(reader);
    PyObject *value = take(reader, ':') ? read_value(reader, depth) : NULL;
    int failed = value == NULL || PyDict_SetItem(object, key, value) < 0;
    Py_DecRef(key);
    Py_DecRef(value);
    if (failed) break;
    skip_spaces(reader);
    if (take(reader, '}')) return object;
    if (!take(reader, ',')) break;
  }
  Py_DecRef(object);
  return NULL;
}

static PyObject *read_array(struct reader *reader, int depth) {
  PyObject *array = PyList_New(0);
  if (array == NULL) return NULL;
  skip_spaces(reader);
  if (take(reader, ']')) return array;
  for (;;) {
    PyObject *value = read_value(reader, depth);
    int failed = value == NULL || PyList_Append(array, value) < 0;
    Py_DecRef(value);
    if (failed) break;
    skip_spaces(reader);
    if (take(reader, ']')) return array;
    if (!take(reader, ',')) break;
  }
  Py_DecRef(array);
  return NULL;
}

static PyObject *read_literal(struct reader *reader, const char *name, PyObject *value) {
  size_t length = strlen(name);
  if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, name, length) != 0) return NULL;
  reader->at += length;
  Py_IncRef(value);
  return value;
}

static PyObject *read_value(struct reader *reader, int depth) {
  if (depth == MAX_DEPTH) return NULL;
  skip_spaces(reader);
  if (reader->at == reader->end) return NULL;
  switch (*reader->at) {
  case '{':
    reader->at++;
    return read_object(reader, depth + 1);
  case '[':
    reader->at++;
    return read_array(reader, depth + 1);
  case '"':
    reader->at++;
    return read_string(reader);
  case 't':
    return read_literal(reader, "true", &_Py_TrueStruct);
  case 'f':
    return read_literal(reader, "false", &_Py_FalseStruct);
  case 'n':
    return read_literal(reader, "null", &_Py_NoneStruct);
  default:
    return read_number(reader);
  }
}

PyObject *json_read(const char *text, size_t length) {
  struct reader reader = {.at = text, .end = text + length};
  PyObject *value = read_value(&reader, 0);
  free(reader.text.bytes);
  skip_spaces(&reader);
  if (value != NULL && reader.at != reader.end) {
    Py_DecRef(value);
    value = NULL;
  }
  if (value == NULL) PyErr_Clear();
  return value;
}
