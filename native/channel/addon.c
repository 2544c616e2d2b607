// The Node.js runtime's end of its socket, without streams: a frame costs one read, one call of a function and one write.
// What a container of many runs is mostly out of the processor's caches, while this code is the same memory in all of
// them. One channel a process, as there is one socket.
#include "inbox.h"
#include "outbox.h"

#include <errno.h>
#include <node_api.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

// Of libuv's stable interface, as uv.h does not come with Node-API's headers.
struct uv_loop_s;
typedef struct uv_poll_s uv_poll_t;
enum { UV_POLL = 8, UV_READABLE = 1, UV_WRITABLE = 2 };
size_t uv_handle_size(int type);
int uv_poll_init(struct uv_loop_s *loop, uv_poll_t *handle, int fd);
int uv_poll_start(uv_poll_t *handle, int events, void (*on_event)(uv_poll_t *handle, int status, int events));
int uv_backend_fd(const struct uv_loop_s *loop);
int uv_backend_timeout(const struct uv_loop_s *loop);
void uv_update_time(struct uv_loop_s *loop);

// V8's SetFlagsFromString. Node's module v8, which has it, takes 5 ms to load.
void set_flags(const char *flags) __asm__("_ZN2v82V818SetFlagsFromStringEPKc") __attribute__((weak));

enum { RESULT = 4, LOG = 6, CODE = 14, MAX_LOG = 64, SMALL_TEXT = 16 * 1024, LONGEST_CHARACTER = 4 };

// Runs that were answered at once, one right after the other, until the next is awaited outside of the event loop; until the
// loop gets its turn; how long the next is awaited, and one counts as following right after, ms.
enum { BEFORE_WAITING = 4, BETWEEN_TURNS = 32, LINGER_MS = 100 };

static struct {
  int fd;
  napi_env env;
  napi_async_context context;
  napi_ref resource, on_frame, on_end, on_violation;
  napi_ref on_run; // NULL: runs are frames like others.
  struct uv_loop_s *loop;
  uv_poll_t *poll;
  struct inbox inbox;
  struct outbox outbox;
  // The run that `on_run` was called with.
  bool under_way;
  uint32_t id;
  double since_us;
  char body[MAX_SPLIT]; // What it says besides its value.
  size_t body_bytes;    // 0 once it was taken.
  unsigned at_once;     // Runs that were answered before the call with them returned, one right after the other.
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

static void deliver_frame(const struct frame *frame) {
  napi_value arguments[5];
  check(napi_create_uint32(channel.env, frame->type, &arguments[0]), "type");
  check(napi_create_uint32(channel.env, frame->id, &arguments[1]), "id");
  if (frame->type == CODE) check(napi_create_buffer_copy(channel.env, frame->bytes, frame->text, NULL, &arguments[2]), "code");
  else arguments[2] = text_of(frame->text, frame->bytes);
  check(napi_create_double(channel.env, now_us(), &arguments[3]), "time");
  if (frame->rest != NULL) arguments[4] = text_of(frame->rest, frame->rest_bytes);
  call(channel.on_frame, frame->rest != NULL ? 5 : 4, arguments);
}

/** Returns whether the run was answered at once. */
static bool deliver_run(const struct frame *frame) {
  double before_us = channel.since_us;
  channel.since_us = now_us();
  if (channel.since_us - before_us > LINGER_MS * 1000) channel.at_once = 0;
  channel.under_way = true;
  channel.id = frame->id;
  memcpy(channel.body, frame->rest, frame->rest_bytes);
  channel.body_bytes = frame->rest_bytes;
  napi_value arguments[2];
  check(napi_create_uint32(channel.env, frame->id, &arguments[0]), "id");
  arguments[1] = text_of(frame->text, frame->bytes);
  call(channel.on_run, 2, arguments);
  return !channel.under_way;
}

static void deliver(const struct frame *frame) {
  napi_handle_scope scope;
  check(napi_open_handle_scope(channel.env, &scope), "scope");
  bool at_once = false;
  if (frame->rest != NULL && channel.on_run != NULL && !channel.under_way) at_once = deliver_run(frame);
  else deliver_frame(frame);
  channel.at_once = at_once ? channel.at_once + 1 : 0;
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

/** Reads once, and hands over what has come. False: nothing came, or nothing more will. */
static bool receive(void) {
  enum arrival arrival = inbox_read(&channel.inbox, channel.fd);
  if (arrival == PEER_GONE) report(channel.on_end, "");
  if (arrival != ARRIVED) return false;
  struct frame frame;
  size_t too_long;
  while (inbox_next(&channel.inbox, &frame, &too_long)) deliver(&frame);
  if (too_long == 0) return true;
  char message[80];
  snprintf(message, sizeof message, "a frame of %zu bytes is longer than %d", too_long, MAX_PAYLOAD);
  report(channel.on_violation, message);
  return false;
}

/**
 * Waits for the next frame right here, after runs that followed each other and were answered at once: a turn of the event loop
 * takes one call of the system more, and much code that is in no cache. Returns false, at once or later, when the loop has
 * something to do.
 */
static bool next_comes(void) {
  if (channel.at_once < BEFORE_WAITING || channel.at_once % BETWEEN_TURNS == 0) return false;
  if (channel.outbox.sent < channel.outbox.filled) return false;
  int timeout_ms = uv_backend_timeout(channel.loop);
  if (timeout_ms == 0) return false;
  if (timeout_ms < 0 || timeout_ms > LINGER_MS) timeout_ms = LINGER_MS;
  // The loop's own descriptor is readable when any is that the loop watches: if it is not this one, nothing is received.
  struct pollfd any = {.fd = uv_backend_fd(channel.loop), .events = POLLIN};
  int came = poll(&any, 1, timeout_ms);
  uv_update_time(channel.loop);
  return came > 0;
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
  while (receive() && next_comes()) {
  }
}

/** The arguments of a call; false, and a TypeError thrown, if there are fewer than `count`. */
static bool take(napi_env env, napi_callback_info info, size_t count, napi_value *arguments) {
  size_t given = count;
  check(napi_get_cb_info(env, info, &given, arguments, NULL, NULL), "arguments");
  if (given == count) return true;
  napi_throw_type_error(env, NULL, "too few arguments");
  return false;
}

/** Queues a frame whose text is a value of JavaScript; false if it is no text. */
static bool queue_text(napi_env env, uint8_t type, uint32_t id, napi_value text) {
  size_t bytes;
  char *payload = outbox_reserve(&channel.outbox, SMALL_TEXT);
  if (napi_get_value_string_utf8(env, text, payload, SMALL_TEXT + 1, &bytes) != napi_ok) return false;
  if (bytes + LONGEST_CHARACTER > SMALL_TEXT) { // There may be more.
    check(napi_get_value_string_utf8(env, text, NULL, 0, &bytes), "text");
    payload = outbox_reserve(&channel.outbox, bytes);
    check(napi_get_value_string_utf8(env, text, payload, bytes + 1, &bytes), "text");
  }
  outbox_add(&channel.outbox, type, id, bytes);
  return true;
}

/** Takes `type`, `id` and `text` from the front of `arguments`. False, and a TypeError thrown: one is of another type. */
static bool queue_given(napi_env env, const napi_value *arguments, uint32_t *id) {
  uint32_t type;
  if (napi_get_value_uint32(env, arguments[0], &type) == napi_ok && napi_get_value_uint32(env, arguments[1], id) == napi_ok &&
      queue_text(env, (uint8_t)type, *id, arguments[2]))
    return true;
  napi_throw_type_error(env, NULL, "expected a type, an id and a text");
  return false;
}

/** Queues a log frame that says how long a run took; without a figure if `us` is negative. */
static void queue_log(uint32_t id, double us) {
  static const char begin[] = "{\"us\":";
  char *log = outbox_reserve(&channel.outbox, MAX_LOG), *end = log;
  if (us < 0) *end++ = '{';
  else {
    char digits[24], *first = digits + sizeof digits; // printf's code would be in no cache.
    unsigned long long left = (unsigned long long)(us + 0.5);
    do *--first = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    size_t count = (size_t)(digits + sizeof digits - first);
    memcpy(log, begin, sizeof begin - 1);
    memcpy(log + sizeof begin - 1, first, count);
    end += sizeof begin - 1 + count;
  }
  *end++ = '}';
  outbox_add(&channel.outbox, LOG, id, (size_t)(end - log));
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
  uint32_t id;
  if (take(env, info, 3, arguments)) queue_given(env, arguments, &id);
  return NULL;
}

// answer(type, id, text, sinceUs, send): with its log frame, which says how long it took if `sinceUs` is a number
static napi_value answer(napi_env env, napi_callback_info info) {
  napi_value arguments[5];
  uint32_t id;
  if (!take(env, info, 5, arguments) || !queue_given(env, arguments, &id)) return NULL;
  double since_us;
  bool send = false;
  bool timed = napi_get_value_double(env, arguments[3], &since_us) == napi_ok;
  queue_log(id, timed ? now_us() - since_us : -1);
  if (channel.id == id) channel.under_way = false;
  check(napi_get_value_bool(env, arguments[4], &send), "send");
  if (send) send_queued();
  return NULL;
}

// answerRun(text): the result of the run that `onRun` was called with, with its log frame
static napi_value answer_run(napi_env env, napi_callback_info info) {
  napi_value text;
  if (!take(env, info, 1, &text)) return NULL;
  if (!queue_text(env, RESULT, channel.id, text)) {
    napi_throw_type_error(env, NULL, "expected a text");
    return NULL;
  }
  queue_log(channel.id, now_us() - channel.since_us);
  channel.under_way = false;
  send_queued();
  return NULL;
}

// takeBody(): what that run says besides its value, as the text of an object; undefined if it was taken
static napi_value take_body(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  size_t bytes = channel.body_bytes;
  channel.body_bytes = 0;
  return bytes == 0 ? NULL : text_of(channel.body, bytes);
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

// takeRuns(onRun): calls onRun(id, text) with each run that comes in two texts while none is under way
static napi_value take_runs(napi_env env, napi_callback_info info) {
  napi_value on_run;
  if (take(env, info, 1, &on_run)) channel.on_run = keep(env, on_run);
  return NULL;
}

// open(fd, onFrame, onEnd, onViolation). Throws where the descriptor cannot be watched. It is never closed: the process
// ends with it, without letting the event loop run out.
static napi_value open_channel(napi_env env, napi_callback_info info) {
  napi_value arguments[4], resource, name;
  if (!take(env, info, 4, arguments)) return NULL;
  check(napi_get_value_int32(env, arguments[0], &channel.fd), "descriptor");
  check(napi_get_uv_event_loop(env, &channel.loop), "event loop");
  channel.poll = calloc(1, uv_handle_size(UV_POLL));
  if (channel.poll == NULL || uv_poll_init(channel.loop, channel.poll, channel.fd) != 0) {
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

// hide(): other processes of this user, such as a compiler with the code of an action, open none of this one's descriptors by
// /proc. Throws if the kernel refuses.
static napi_value hide(napi_env env, napi_callback_info info) {
  (void)info;
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) napi_throw_error(env, NULL, strerror(errno));
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {.utf8name = "open", .method = open_channel, .attributes = napi_enumerable},
      {.utf8name = "queue", .method = queue, .attributes = napi_enumerable},
      {.utf8name = "answer", .method = answer, .attributes = napi_enumerable},
      {.utf8name = "flush", .method = flush, .attributes = napi_enumerable},
      {.utf8name = "compileSooner", .method = compile_sooner, .attributes = napi_enumerable},
      {.utf8name = "takeRuns", .method = take_runs, .attributes = napi_enumerable},
      {.utf8name = "takeBody", .method = take_body, .attributes = napi_enumerable},
      {.utf8name = "answerRun", .method = answer_run, .attributes = napi_enumerable},
      {.utf8name = "hide", .method = hide, .attributes = napi_enumerable},
  };
  check(napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions), "functions");
  return exports;
}
