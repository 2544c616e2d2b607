#include "json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_INTEGER = 24, MOST_ESCAPED = 6, LEAST_SIZE = 4096 };

void buffer_reserve(struct buffer *buffer, size_t more) {
  if (buffer->size - buffer->filled >= more) return;
  size_t size = buffer->size * 2;
  if (size < buffer->filled + more) size = buffer->filled + more;
  if (size < LEAST_SIZE) size = LEAST_SIZE;
  char *bytes = realloc(buffer->bytes, size);
  if (bytes == NULL) abort();
  buffer->bytes = bytes;
  buffer->size = size;
}

static void put(struct buffer *buffer, const char *bytes, size_t length) {
  buffer_reserve(buffer, length);
  memcpy(buffer->bytes + buffer->filled, bytes, length);
  buffer->filled += length;
}

static void put_escaped(struct buffer *buffer, unsigned char c) {
  static const char letters[] = "btn\0fr"; // From \b on; what lies between has none.
  char escape[MOST_ESCAPED + 1];
  if (c == '"' || c == '\\') snprintf(escape, sizeof escape, "\\%c", c);
  else if (c >= '\b' && c <= '\r' && letters[c - '\b'] != '\0') snprintf(escape, sizeof escape, "\\%c", letters[c - '\b']);
  else snprintf(escape, sizeof escape, "\\u%04x", c);
  put(buffer, escape, strlen(escape));
}

static bool write_text(struct buffer *buffer, PyObject *text) {
  ssize_t length;
  const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes == NULL) return false;
  const char *end = bytes + length;
  put(buffer, "\"", 1);
  while (bytes < end) {
    const char *plain = bytes;
    while (bytes < end && (unsigned char)*bytes >= 0x20 && *bytes != '"' && *bytes != '\\') bytes++;
    put(buffer, plain, (size_t)(bytes - plain));
    if (bytes < end) put_escaped(buffer, (unsigned char)*bytes++);
  }
  put(buffer, "\"", 1);
  return true;
}

static bool write_integer(struct buffer *buffer, PyObject *number) {
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow != 0) return false;
  buffer_reserve(buffer, MAX_INTEGER);
  buffer->filled += (size_t)snprintf(buffer->bytes + buffer->filled, MAX_INTEGER, "%lld", value);
  return true;
}

static bool write_real(struct buffer *buffer, PyObject *number) {
  double value = PyFloat_AsDouble(number);
  if (!isfinite(value)) return false;
  char *text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
  if (text == NULL) return false;
  put(buffer, text, strlen(text));
  PyMem_Free(text);
  return true;
}

static bool write_value(struct buffer *buffer, PyObject *value, int depth);

static bool write_object(struct buffer *buffer, PyObject *object, int depth) {
  ssize_t position = 0;
  PyObject *key, *value;
  put(buffer, "{", 1);
  for (bool first = true; PyDict_Next(object, &position, &key, &value); first = false) {
    if (!first) put(buffer, ",", 1);
    if (key->type != &PyUnicode_Type || !write_text(buffer, key)) return false;
    put(buffer, ":", 1);
    if (!write_value(buffer, value, depth)) return false;
  }
  put(buffer, "}", 1);
  return true;
}

static bool write_array(struct buffer *buffer, PyObject *array, ssize_t length,
                        PyObject *(*item)(PyObject *, ssize_t), int depth) {
  put(buffer, "[", 1);
  for (ssize_t i = 0; i < length; i++) {
    if (i > 0) put(buffer, ",", 1);
    if (!write_value(buffer, item(array, i), depth)) return false;
  }
  put(buffer, "]", 1);
  return true;
}

// No code of the action runs on the way: all types are the interpreter's own.
static bool write_value(struct buffer *buffer, PyObject *value, int depth) {
  if (depth == MAX_DEPTH) return false;
  if (value == &_Py_NoneStruct) put(buffer, "null", 4);
  else if (value == &_Py_TrueStruct) put(buffer, "true", 4);
  else if (value == &_Py_FalseStruct) put(buffer, "false", 5);
  else if (value->type == &PyUnicode_Type) return write_text(buffer, value);
  else if (value->type == &PyDict_Type) return write_object(buffer, value, depth + 1);
  else if (value->type == &PyList_Type) return write_array(buffer, value, PyList_Size(value), PyList_GetItem, depth + 1);
  else if (value->type == &PyTuple_Type)
    return write_array(buffer, value, PyTuple_Size(value), PyTuple_GetItem, depth + 1);
  else if (value->type == &PyLong_Type) return write_integer(buffer, value);
  else if (value->type == &PyFloat_Type) return write_real(buffer, value);
  else return false;
  return true;
}

int json_write(struct buffer *buffer, PyObject *value) {
  size_t before = buffer->filled;
  if (write_value(buffer, value, 0)) return 1;
  buffer->filled = before;
  PyErr_Clear();
  return 0;
}
