// The Python runtime's end of its socket (runtimes/python/runtime.py): a run costs one read, one call of the action and one
// write, and no code of the interpreter besides the action's. What is unusual is handed to the runtime's Python code.
#define _GNU_SOURCE
#include "../channel/inbox.h"
#include "json.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RUN = 3, RESULT = 4, LOG = 6, MAX_LOG = 64, VALUE_PREFIX = 9 /* {"value": */, WATCH_STACK = 64 * 1024 };

/** As read(2), but returns -errno. */
typedef ssize_t (*reader)(int fd, void *to, size_t length);

static struct {
  int fd;
  reader read;
  uint32_t *running; // Where the id of the run under way is noted, and after it whether an interruption ends it all; or NULL.
  PyObject *handle, *call, *finish;             // Of the runtime.
  PyObject *action;                             // To be called directly; NULL: runs are the runtime's.
  PyObject *body;                               // What the last run's body says besides its value; NULL once asked for.
  PyObject *os, *environ, *environ_name, *apply; // os.environ that asks for it, and what sets one that an action put there.
  PyObject *flush;
  struct inbox inbox;
  struct buffer out;
} channel;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/**
 * Other threads of the action go on meanwhile. A blocked read would wake up when the peer takes what was written, too, which
 * is one wake-up more a run.
 */
static ssize_t read_unlocked(int fd, void *to, size_t length) {
  void *thread = PyEval_SaveThread();
  struct pollfd readable = {.fd = fd, .events = POLLIN};
  ssize_t got = poll(&readable, 1, -1) < 0 ? -1 : read(fd, to, length);
  if (got < 0) got = -errno;
  PyEval_RestoreThread(thread);
  return got;
}

static bool write_all(const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t sent = write(channel.fd, bytes, length);
    if (sent < 0 && errno != EINTR) return false;
    if (sent < 0) continue;
    bytes += sent;
    length -= (size_t)sent;
  }
  return true;
}

/** The runtime's code handles a frame. False: it raised. */
static bool hand_over(const struct frame *frame) {
  const char *payload = frame->text;
  size_t length = frame->bytes;
  if (frame->rest != NULL) { // As it came, before it was split.
    payload -= VALUE_PREFIX;
    length += VALUE_PREFIX + frame->rest_bytes;
    *(char *)frame->rest = ',';
  }
  PyObject *kind = PyLong_FromLongLong(frame->type), *id = PyLong_FromLongLong(frame->id);
  PyObject *bytes = PyBytes_FromStringAndSize(payload, (ssize_t)length);
  PyObject *done = bytes == NULL ? NULL : PyObject_CallFunctionObjArgs(channel.handle, kind, id, bytes, NULL);
  Py_DecRef(kind);
  Py_DecRef(id);
  Py_DecRef(bytes);
  Py_DecRef(done);
  return done != NULL;
}

static bool is_harmless(void) {
  return PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
         PyErr_ExceptionMatches(PyExc_OSError);
}

/** As flush_output of gpuwhisk_process. */
static bool flush_stream(const char *name) {
  PyObject *stream = PySys_GetObject(name); // Borrowed.
  if (stream == NULL) return true;
  Py_IncRef(stream);
  PyObject *done = PyObject_CallMethodObjArgs(stream, channel.flush, NULL);
  Py_DecRef(stream);
  Py_DecRef(done);
  if (done != NULL) return true;
  if (!is_harmless()) return false;
  PyErr_Clear();
  return true;
}

/** What the action raised becomes a result, or the end of the process. */
static PyObject *result_of_exception(void) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != NULL) PyException_SetTraceback(value, traceback);
  Py_DecRef(type);
  Py_DecRef(traceback);
  PyObject *result = PyObject_CallFunctionObjArgs(channel.call, &_Py_NoneStruct, &_Py_NoneStruct, value, NULL);
  Py_DecRef(value);
  return result;
}

static bool is_plain(PyObject *result) {
  return result->type == &PyDict_Type || result->type == &PyList_Type || result->type == &PyTuple_Type;
}

static void put_header(size_t at, uint8_t type, uint32_t id, size_t length) {
  char *header = channel.out.bytes + at;
  uint32_t bytes = (uint32_t)length;
  memcpy(header, &bytes, sizeof bytes);
  header[4] = (char)type;
  memcpy(header + 5, &id, sizeof id);
}

/** Writes the answer to a run. False: the result is for the runtime's code. */
static bool encode(PyObject *result, uint32_t id, int64_t started_ns) {
  struct buffer *out = &channel.out;
  out->filled = 0;
  buffer_reserve(out, FRAME_HEADER);
  out->filled = FRAME_HEADER;
  if (!is_plain(result) || !json_write(out, result) || out->filled > MAX_PAYLOAD) return false;
  put_header(0, RESULT, id, out->filled - FRAME_HEADER);
  buffer_reserve(out, FRAME_HEADER + MAX_LOG);
  char *log = out->bytes + out->filled + FRAME_HEADER;
  int length = snprintf(log, MAX_LOG, "{\"us\":%lld}", (long long)(now_ns() - started_ns) / 1000);
  put_header(out->filled, LOG, id, (size_t)length);
  out->filled += FRAME_HEADER + (size_t)length;
  return true;
}

/** Notes what a run's body says besides its value, which is read when the environment is asked for. */
static bool note_body(const struct frame *frame) {
  PyObject *body = PyBytes_FromStringAndSize(frame->rest, (ssize_t)frame->rest_bytes);
  if (body == NULL) return false;
  Py_DecRef(channel.body);
  channel.body = body;
  if (PyDict_GetItemWithError(PyModule_GetDict(channel.os), channel.environ_name) == channel.environ) return true;
  PyObject *done = PyObject_CallFunctionObjArgs(channel.apply, NULL); // Nothing else would see that one read.
  Py_DecRef(done);
  return done != NULL;
}

enum served { SERVED, FAILED, UNSENT };

static enum served serve_run(const struct frame *frame, PyObject *value) {
  if (!note_body(frame)) {
    Py_DecRef(value);
    return FAILED;
  }
  uint32_t id = frame->id;
  int64_t started_ns = now_ns();
  PyObject *result = PyObject_CallFunctionObjArgs(channel.action, value, NULL);
  Py_DecRef(value);
  if (result == NULL) result = result_of_exception();
  if (result == NULL) return FAILED;
  if (!encode(result, id, started_ns)) {
    PyObject *request = PyLong_FromLongLong(id), *since = PyLong_FromLongLong(started_ns);
    PyObject *done = PyObject_CallFunctionObjArgs(channel.finish, request, result, since, NULL);
    Py_DecRef(request);
    Py_DecRef(since);
    Py_DecRef(result);
    Py_DecRef(done);
    return done != NULL ? SERVED : FAILED;
  }
  Py_DecRef(result);
  if (!flush_stream("stdout") || !flush_stream("stderr")) return FAILED;
  return write_all(channel.out.bytes, channel.out.filled) ? SERVED : UNSENT;
}

/** Whether a run is of several requests at once. No text of JSON has that sequence within it. */
static bool is_batch(const struct frame *frame) {
  static const char key[] = "\"batch\":";
  return memmem(frame->rest, frame->rest_bytes, key, sizeof key - 1) != NULL;
}

static enum served serve_frame(struct frame *frame) {
  if (frame->type == RUN && frame->rest != NULL && channel.action != NULL && !is_batch(frame)) {
    PyObject *value = json_read(frame->text, frame->bytes);
    if (value != NULL) return serve_run(frame, value);
  }
  return hand_over(frame) ? SERVED : FAILED;
}

/** A result that could not be sent, as bytes. */
static PyObject *unsent(void) {
  uint32_t length;
  memcpy(&length, channel.out.bytes, sizeof length);
  return PyBytes_FromStringAndSize(channel.out.bytes + FRAME_HEADER, length);
}

static PyObject *none(void) {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

static PyObject *serve_all(void) {
  for (;;) {
    struct frame frame;
    size_t too_long;
    while (inbox_next(&channel.inbox, &frame, &too_long)) {
      if (channel.running != NULL) __atomic_store_n(channel.running, frame.id, __ATOMIC_RELEASE);
      enum served served = serve_frame(&frame);
      if (served == FAILED) return NULL;
      if (served == UNSENT) return unsent();
      if (channel.running != NULL) __atomic_store_n(channel.running, 0, __ATOMIC_RELEASE);
    }
    if (too_long > 0) return PyLong_FromLongLong((long long)too_long);
    switch (inbox_fill(&channel.inbox, channel.fd, channel.read)) {
    case ARRIVED:
      break;
    case PEER_GONE:
      return none();
    case NOTHING_YET: // A signal came.
      if (channel.running != NULL && __atomic_load_n(channel.running + 1, __ATOMIC_ACQUIRE)) return none();
      if (PyErr_CheckSignals() < 0) return NULL;
    }
  }
}

static PyObject *attribute(PyObject *object, const char *name) { return PyObject_GetAttrString(object, name); }

// serve(fd, runtime, read, running): hands the frames that come to `runtime` until the peer is gone. Returns None then, the
// length of a frame that is too long, or the result of a run that could not be sent. `read`: the address of a function to
// read by (0: the usual), `running`: that of two numbers of 32 bits (0: none), the id of the run under way, and whether an
// interrupted read ends it all, for which None is returned, too. Raises what `runtime.handle` raises.
static PyObject *serve(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *runtime;
  unsigned long long reads, running;
  if (!PyArg_ParseTuple(arguments, "iOKK", &channel.fd, &runtime, &reads, &running)) return NULL;
  channel.read = reads == 0 ? read_unlocked : (reader)(uintptr_t)reads;
  channel.running = (uint32_t *)(uintptr_t)running;
  channel.handle = attribute(runtime, "handle");
  channel.call = attribute(runtime, "call");
  channel.finish = attribute(runtime, "finish");
  if (channel.handle == NULL || channel.call == NULL || channel.finish == NULL) return NULL;
  return serve_all();
}

// call_directly(action, environ, apply): runs are calls of `action` from now on. Where os.environ is no longer `environ`,
// `apply` is called before each.
static PyObject *call_directly(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *action, *environ, *apply;
  if (!PyArg_ParseTuple(arguments, "OOO", &action, &environ, &apply)) return NULL;
  channel.flush = PyUnicode_InternFromString("flush");
  channel.environ_name = PyUnicode_InternFromString("environ");
  channel.os = PyImport_ImportModule("os");
  if (channel.flush == NULL || channel.environ_name == NULL || channel.os == NULL) return NULL;
  Py_IncRef(action);
  Py_IncRef(environ);
  Py_IncRef(apply);
  channel.action = action;
  channel.environ = environ;
  channel.apply = apply;
  return none();
}

static void *await_hang_up(void *fd) {
  struct pollfd peer = {.fd = (int)(intptr_t)fd, .events = POLLRDHUP};
  while (poll(&peer, 1, -1) < 0) continue;
  _exit(0);
}

// watch_peer(fd): ends the process when the peer closes, also in the middle of a run. A thread that knows no Python: it gets no
// signals, and needs no lock of the interpreter.
static PyObject *watch_peer(PyObject *module, PyObject *arguments) {
  (void)module;
  int fd;
  if (!PyArg_ParseTuple(arguments, "i", &fd)) return NULL;
  sigset_t all, before;
  pthread_t thread;
  pthread_attr_t attributes;
  sigfillset(&all);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, WATCH_STACK);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, &attributes, await_hang_up, (void *)(intptr_t)fd);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (error == 0) return none();
  errno = error;
  return PyErr_SetFromErrno(PyExc_OSError);
}

// take_body(): what the last run's body said besides its value, as bytes, once; None: nothing new
static PyObject *take_body(PyObject *module, PyObject *arguments) {
  (void)module;
  (void)arguments;
  PyObject *body = channel.body;
  channel.body = NULL;
  return body == NULL ? none() : body;
}

// read(bytes), write(value): json_read and json_write; None for what is left to the module json
static PyObject *read_json(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *bytes;
  char *text;
  ssize_t length;
  if (!PyArg_ParseTuple(arguments, "O", &bytes) || PyBytes_AsStringAndSize(bytes, &text, &length) < 0) return NULL;
  PyObject *value = json_read(text, (size_t)length);
  return value == NULL ? none() : value;
}

static PyObject *write_json(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *value;
  if (!PyArg_ParseTuple(arguments, "O", &value)) return NULL;
  struct buffer text = {0};
  PyObject *written = json_write(&text, value) ? PyBytes_FromStringAndSize(text.bytes, (ssize_t)text.filled) : none();
  free(text.bytes);
  return written;
}

__attribute__((visibility("default"))) PyObject *PyInit_gpuwhisk_channel(void) {
  static PyMethodDef methods[] = {
      {"serve", serve, METH_VARARGS, NULL},
      {"call_directly", call_directly, METH_VARARGS, NULL},
      {"watch_peer", watch_peer, METH_VARARGS, NULL},
      {"take_body", take_body, METH_VARARGS, NULL},
      {"read", read_json, METH_VARARGS, NULL},
      {"write", write_json, METH_VARARGS, NULL},
      {NULL, NULL, 0, NULL},
  };
  static PyModuleDef definition = {
      .base = {.references = 1}, .name = "gpuwhisk_channel", .size = -1, .methods = methods};
  return PyModule_Create2(&definition, PYTHON_ABI_VERSION);
}
