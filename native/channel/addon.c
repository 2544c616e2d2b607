// The Node.js runtime's end of its socket, without streams: a frame costs one read, one call of a function and one write.
// What a container of many runs is mostly out of the processor's caches, while this code is the same memory in all of
// them. One channel a process, as there is one socket.
#include "inbox.h"
#include "outbox.h"

#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Of libuv's stable interface, as uv.h does not come with Node-API's headers.
struct uv_loop_s;
typedef struct uv_poll_s uv_poll_t;
enum { UV_POLL = 8, UV_READABLE = 1, UV_WRITABLE = 2 };
size_t uv_handle_size(int type);
int uv_poll_init(struct uv_loop_s *loop, uv_poll_t *handle, int fd);
int uv_poll_start(uv_poll_t *handle, int events, void (*on_event)(uv_poll_t *handle, int status, int events));

// V8's SetFlagsFromString. Node's module v8, which has it, takes 5 ms to load.
void set_flags(const char *flags) __asm__("_ZN2v82V818SetFlagsFromStringEPKc") __attribute__((weak));

enum { LOG = 6, MAX_LOG = 64, SMALL_TEXT = 16 * 1024 };

static struct {
  int fd;
  napi_env env;
  napi_async_context context;
  napi_ref resource, on_frame, on_end, on_violation;
  uv_poll_t *poll;
  struct inbox inbox;
  struct outbox outbox;
} channel;

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void check(napi_status status, const char *what) {
  if (status != napi_ok) napi_fatal_error(what, NAPI_AUTO_LENGTH, "a call of Node-API failed", NAPI_AUTO_LENGTH);
}

static napi_value value_of(napi_ref reference) {
  napi_value value;
  check(napi_get_reference_value(channel.env, reference, &value), "reference");
  return value;
}

static napi_value text_of(const char *bytes, size_t length) {
  napi_value value;
  check(napi_create_string_utf8(channel.env, bytes, length, &value), "text");
  return value;
}

/** Calls from the event loop, with what is due after a call from it. */
static void call(napi_ref function, size_t count, const napi_value *arguments) {
  napi_value result, error;
  napi_status status = napi_make_callback(channel.env, channel.context, value_of(channel.resource), value_of(function),
                                          count, arguments, &result);
  if (status == napi_ok) return;
  if (status != napi_pending_exception) check(status, "callback");
  check(napi_get_and_clear_last_exception(channel.env, &error), "exception");
  napi_fatal_exception(channel.env, error);
}

static void deliver(const struct frame *frame) {
  napi_handle_scope scope;
  check(napi_open_handle_scope(channel.env, &scope), "scope");
  napi_value arguments[5];
  check(napi_create_uint32(channel.env, frame->type, &arguments[0]), "type");
  check(napi_create_uint32(channel.env, frame->id, &arguments[1]), "id");
  arguments[2] = text_of(frame->text, frame->bytes);
  check(napi_create_double(channel.env, now_us(), &arguments[3]), "time");
  if (frame->rest != NULL) arguments[4] = text_of(frame->rest, frame->rest_bytes);
  call(channel.on_frame, frame->rest != NULL ? 5 : 4, arguments);
  check(napi_close_handle_scope(channel.env, scope), "scope");
}

static void report(napi_ref function, const char *message) {
  napi_handle_scope scope;
  check(napi_open_handle_scope(channel.env, &scope), "scope");
  napi_value text = text_of(message, NAPI_AUTO_LENGTH);
  call(function, 1, &text);
  check(napi_close_handle_scope(channel.env, scope), "scope");
}

static void on_event(uv_poll_t *handle, int status, int events);

static void watch(int events) {
  if (uv_poll_start(channel.poll, events, on_event) != 0) abort();
}

static void on_event(uv_poll_t *handle, int status, int events) {
  (void)handle;
  if (status == 0 && (events & UV_WRITABLE)) {
    enum departure departure = outbox_flush(&channel.outbox, channel.fd);
    if (departure == NOBODY_THERE) return report(channel.on_end, "");
    if (departure == SENT) watch(UV_READABLE);
  }
  // A descriptor that poll complains about is read, too: that tells what is the matter.
  if (status == 0 && !(events & UV_READABLE)) return;
  enum arrival arrival = inbox_read(&channel.inbox, channel.fd);
  if (arrival == PEER_GONE) return report(channel.on_end, "");
  if (arrival == NOTHING_YET) return;
  struct frame frame;
  size_t too_long;
  while (inbox_next(&channel.inbox, &frame, &too_long)) deliver(&frame);
  if (too_long == 0) return;
  char message[80];
  snprintf(message, sizeof message, "a frame of %zu bytes is longer than %d", too_long, MAX_PAYLOAD);
  report(channel.on_violation, message);
}

/** The arguments of a call; false, and a TypeError thrown, if there are fewer than `count`. */
static bool take(napi_env env, napi_callback_info info, size_t count, napi_value *arguments) {
  size_t given = count;
  check(napi_get_cb_info(env, info, &given, arguments, NULL, NULL), "arguments");
  if (given == count) return true;
  napi_throw_type_error(env, NULL, "too few arguments");
  return false;
}

/** Queues a frame whose text is a value of JavaScript; false, and a TypeError thrown, if an argument is of another type. */
static bool queue_text(napi_env env, const napi_value *arguments) {
  uint32_t type, id;
  size_t units, bytes;
  if (napi_get_value_uint32(env, arguments[0], &type) != napi_ok ||
      napi_get_value_uint32(env, arguments[1], &id) != napi_ok ||
      napi_get_value_string_utf16(env, arguments[2], NULL, 0, &units) != napi_ok) {
    napi_throw_type_error(env, NULL, "expected a type, an id and a text");
    return false;
  }
  // No UTF-16 unit takes more than three bytes of UTF-8; of a long text it is worth counting them.
  size_t most = units * 3;
  if (units > SMALL_TEXT) check(napi_get_value_string_utf8(env, arguments[2], NULL, 0, &most), "text");
  char *payload = outbox_reserve(&channel.outbox, most);
  check(napi_get_value_string_utf8(env, arguments[2], payload, most + 1, &bytes), "text");
  outbox_add(&channel.outbox, (uint8_t)type, id, bytes);
  return true;
}

static void send_queued(void) {
  enum departure departure = outbox_flush(&channel.outbox, channel.fd);
  if (departure == MUST_WAIT) watch(UV_READABLE | UV_WRITABLE);
  if (departure != NOBODY_THERE) return;
  napi_value result;
  napi_call_function(channel.env, value_of(channel.resource), value_of(channel.on_end), 0, NULL, &result);
}

// queue(type, id, text)
static napi_value queue(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  if (take(env, info, 3, arguments)) queue_text(env, arguments);
  return NULL;
}

// answer(type, id, text, sinceUs, send): with its log frame, which says how long it took if `sinceUs` is a number
static napi_value answer(napi_env env, napi_callback_info info) {
  napi_value arguments[5];
  if (!take(env, info, 5, arguments) || !queue_text(env, arguments)) return NULL;
  uint32_t id;
  double since_us;
  bool send = false;
  check(napi_get_value_uint32(env, arguments[1], &id), "id");
  char *log = outbox_reserve(&channel.outbox, MAX_LOG);
  bool timed = napi_get_value_double(env, arguments[3], &since_us) == napi_ok;
  int length = timed ? snprintf(log, MAX_LOG, "{\"us\":%.0f}", now_us() - since_us) : snprintf(log, MAX_LOG, "{}");
  outbox_add(&channel.outbox, LOG, id, (size_t)length);
  check(napi_get_value_bool(env, arguments[4], &send), "send");
  if (send) send_queued();
  return NULL;
}

// compileSooner(): has the engine compile what is called often after a tenth of the usual calls, or less
static napi_value compile_sooner(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  if (set_flags != NULL) set_flags("--interrupt-budget=10000");
  return NULL;
}

// flush()
static napi_value flush(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  send_queued();
  return NULL;
}

static napi_ref keep(napi_env env, napi_value value) {
  napi_ref reference;
  check(napi_create_reference(env, value, 1, &reference), "reference");
  return reference;
}

// open(fd, onFrame, onEnd, onViolation). Throws where the descriptor cannot be watched. It is never closed: the process
// ends with it, without letting the event loop run out.
static napi_value open_channel(napi_env env, napi_callback_info info) {
  napi_value arguments[4], resource, name;
  if (!take(env, info, 4, arguments)) return NULL;
  struct uv_loop_s *loop;
  check(napi_get_value_int32(env, arguments[0], &channel.fd), "descriptor");
  check(napi_get_uv_event_loop(env, &loop), "event loop");
  channel.poll = calloc(1, uv_handle_size(UV_POLL));
  if (channel.poll == NULL || uv_poll_init(loop, channel.poll, channel.fd) != 0) {
    napi_throw_error(env, NULL, "the descriptor cannot be watched");
    return NULL;
  }
  channel.env = env;
  check(napi_create_object(env, &resource), "resource");
  check(napi_create_string_utf8(env, "CHANNEL", NAPI_AUTO_LENGTH, &name), "name");
  check(napi_async_init(env, resource, name, &channel.context), "context");
  channel.resource = keep(env, resource);
  channel.on_frame = keep(env, arguments[1]);
  channel.on_end = keep(env, arguments[2]);
  channel.on_violation = keep(env, arguments[3]);
  watch(UV_READABLE);
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {.utf8name = "open", .method = open_channel, .attributes = napi_enumerable},
      {.utf8name = "queue", .method = queue, .attributes = napi_enumerable},
      {.utf8name = "answer", .method = answer, .attributes = napi_enumerable},
      {.utf8name = "flush", .method = flush, .attributes = napi_enumerable},
      {.utf8name = "compileSooner", .method = compile_sooner, .attributes = napi_enumerable},
  };
  check(napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions), "functions");
  return exports;
}
