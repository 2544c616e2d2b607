// Child processes for Node.js without a copy of the server's page tables, which Node.js makes for each and which takes
// milliseconds of its main thread; and pipes for them: Node.js gives its children sockets in their place, which cannot be
// opened again by the path /dev/stdout.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Descriptors of a child: 0 to 2, and its sockets.
enum { max_descriptors = 8, first_free_descriptor = 16 };

struct child {
  struct child *next;
  uint64_t id;
  pid_t pid;
  int pidfd;
  // Calls the function that is told of the end.
  napi_threadsafe_function tell;
};

// Children whose end has not been seen, and the epoll instance of the thread that waits for it, -1 before it runs.
static struct child *children;
static uint64_t last_id;
static int watched = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static napi_value fail(napi_env env, int code) {
  napi_throw_error(env, NULL, strerror(code));
  return NULL;
}

static napi_value pair_of(napi_env env, const int ends[2]) {
  napi_value pair, end;
  bool made = napi_create_array_with_length(env, 2, &pair) == napi_ok;
  for (uint32_t i = 0; i < 2 && made; i++) {
    made = napi_create_int32(env, ends[i], &end) == napi_ok && napi_set_element(env, pair, i, end) == napi_ok;
  }
  if (made) return pair;
  close(ends[0]);
  close(ends[1]);
  return NULL;
}

// pipe(): a pipe's two descriptors, [read, write], neither of which a child process inherits by itself. Throws if there is none.
static napi_value make_pipe(napi_env env, napi_callback_info info) {
  (void)info;
  int ends[2];
  return pipe2(ends, O_CLOEXEC) < 0 ? fail(env, errno) : pair_of(env, ends);
}

// socketPair(): the two descriptors of a pair of stream sockets, as pipe().
static napi_value make_socket_pair(napi_env env, napi_callback_info info) {
  (void)info;
  int ends[2];
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ? fail(env, errno) : pair_of(env, ends);
}

static int open_pidfd(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

// Removes a child from the list, with the lock held; NULL if it is not there.
static struct child *take(uint64_t id) {
  for (struct child **link = &children; *link != NULL; link = &(*link)->next) {
    struct child *child = *link;
    if (child->id != id) continue;
    *link = child->next;
    close(child->pidfd);
    return child;
  }
  return NULL;
}

static void *watch_all(void *unused) {
  (void)unused;
  for (;;) {
    struct epoll_event event;
    if (epoll_wait(watched, &event, 1, -1) < 1) continue;
    pthread_mutex_lock(&lock);
    // The child's environment may have ended meanwhile, and its function with it.
    struct child *child = take(event.data.u64);
    if (child != NULL) napi_call_threadsafe_function(child->tell, NULL, napi_tsfn_nonblocking);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

// Starts the thread unless it runs, with the lock held. Returns an error number.
static int start_watching(void) {
  if (watched >= 0) return 0;
  int made = epoll_create1(EPOLL_CLOEXEC);
  if (made < 0) return errno;
  watched = made;
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&thread, NULL, watch_all, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code == 0) {
    pthread_detach(thread);
  } else {
    watched = -1;
    close(made);
  }
  return code;
}

// On the main thread, which alone reaps, so that a pid is not another child's before its end was told.
static void tell_end(napi_env env, napi_value on_exit, void *given, void *unused) {
  (void)unused;
  const struct child *child = given;
  int status = 0;
  pid_t reaped = waitpid(child->pid, &status, 0);
  if (env == NULL) return;
  napi_value receiver, result, arguments[2];
  bool exited = reaped > 0 && WIFEXITED(status);
  napi_get_global(env, &receiver);
  napi_create_int32(env, exited ? WEXITSTATUS(status) : -1, &arguments[0]);
  napi_create_int32(env, exited ? 0 : WTERMSIG(status), &arguments[1]);
  napi_release_threadsafe_function(child->tell, napi_tsfn_release);
  if (napi_call_function(env, receiver, on_exit, 2, arguments, &result) != napi_pending_exception) return;
  napi_value error;
  if (napi_get_and_clear_last_exception(env, &error) == napi_ok) napi_fatal_exception(env, error);
}

// After the end was told, or when the environment ends before.
static void forget(napi_env env, void *given, void *unused) {
  (void)env;
  (void)unused;
  struct child *child = given;
  pthread_mutex_lock(&lock);
  take(child->id);
  pthread_mutex_unlock(&lock);
  free(child);
}

// The strings of an array, with a final NULL. Freed with free_texts.
static char **texts_of(napi_env env, napi_value array) {
  uint32_t count;
  if (napi_get_array_length(env, array, &count) != napi_ok) return NULL;
  char **texts = calloc((size_t)count + 1, sizeof *texts);
  for (uint32_t i = 0; texts != NULL && i < count; i++) {
    napi_value text;
    size_t length;
    if (napi_get_element(env, array, i, &text) != napi_ok) break;
    if (napi_get_value_string_utf8(env, text, NULL, 0, &length) != napi_ok) break;
    texts[i] = malloc(length + 1);
    if (texts[i] == NULL || napi_get_value_string_utf8(env, text, texts[i], length + 1, &length) != napi_ok) break;
  }
  return texts;
}

static bool is_complete(char **texts, napi_env env, napi_value array) {
  uint32_t count;
  if (texts == NULL || napi_get_array_length(env, array, &count) != napi_ok) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (texts[i] == NULL) return false;
  }
  return true;
}

static void free_texts(char **texts) {
  for (char **text = texts; text != NULL && *text != NULL; text++) free(*text);
  free(texts);
}

// Descriptor numbers for a child, in their order. Those that are targets themselves are moved out of the way; `moved` has
// the copies.
static int descriptors_of(napi_env env, napi_value array, int *descriptors, int *moved) {
  uint32_t count;
  if (napi_get_array_length(env, array, &count) != napi_ok || count > max_descriptors) return -1;
  for (uint32_t i = 0; i < count; i++) {
    napi_value number;
    if (napi_get_element(env, array, i, &number) != napi_ok) return -1;
    if (napi_get_value_int32(env, number, &descriptors[i]) != napi_ok) return -1;
    if (descriptors[i] < 0 || descriptors[i] >= first_free_descriptor) continue;
    moved[i] = descriptors[i] = fcntl(descriptors[i], F_DUPFD_CLOEXEC, first_free_descriptor);
    if (moved[i] < 0) return -1;
  }
  return (int)count;
}

static int start(pid_t *pid, char **command, char **environment, const char *folder, const int *descriptors, int count,
                 bool new_session) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  int code = posix_spawn_file_actions_init(&actions);
  if (code != 0) return code;
  if ((code = posix_spawnattr_init(&attributes)) != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return code;
  }
  for (int i = 0; i < count && code == 0; i++) {
    code = descriptors[i] < 0 ? posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0)
                              : posix_spawn_file_actions_adddup2(&actions, descriptors[i], i);
  }
  if (code == 0 && folder != NULL) code = posix_spawn_file_actions_addchdir_np(&actions, folder);
  short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | (new_session ? POSIX_SPAWN_SETSID : 0);
  if (code == 0) code = posix_spawnattr_setsigdefault(&attributes, &all);
  if (code == 0) code = posix_spawnattr_setsigmask(&attributes, &none);
  if (code == 0) code = posix_spawnattr_setflags(&attributes, flags);
  if (code == 0) code = posix_spawn(pid, command[0], &actions, &attributes, command, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

// Has `on_exit` called after the end of `pid`. Returns NULL, with the process ended, if that fails.
static struct child *watch(napi_env env, pid_t pid, napi_value on_exit, int *code) {
  struct child *child = calloc(1, sizeof *child);
  napi_value name;
  int pidfd = open_pidfd(pid);
  *code = child == NULL ? ENOMEM : pidfd < 0 ? errno : 0;
  if (*code == 0 && (napi_create_string_utf8(env, "gpuwhisk:spawn", NAPI_AUTO_LENGTH, &name) != napi_ok ||
                     napi_create_threadsafe_function(env, on_exit, NULL, name, 0, 1, child, forget, child, tell_end,
                                                     &child->tell) != napi_ok)) {
    *code = ENOMEM;
    free(child);
    child = NULL;
  }
  if (*code == 0) {
    child->pid = pid;
    child->pidfd = pidfd;
    pthread_mutex_lock(&lock);
    child->id = ++last_id;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = child->id};
    *code = start_watching();
    if (*code == 0 && epoll_ctl(watched, EPOLL_CTL_ADD, pidfd, &event) < 0) *code = errno;
    if (*code == 0) {
      child->next = children;
      children = child;
    }
    pthread_mutex_unlock(&lock);
    if (*code == 0) return child;
    napi_release_threadsafe_function(child->tell, napi_tsfn_abort);
    child = NULL; // Freed by forget().
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  if (pidfd >= 0) close(pidfd);
  free(child);
  return NULL;
}

// spawn(command, environment, folder, descriptors, newSession, onExit): starts command[0], a path, and returns
// [pid, handle]. `folder` is a path or null; the child's descriptors are those listed, /dev/null for -1. Calls
// onExit(status, signal), with a status of -1 after a signal. Throws if the program cannot be started.
static napi_value spawn_child(napi_env env, napi_callback_info info) {
  size_t count = 6;
  napi_value given[6], result = NULL, pid_value, handle;
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok || count < 6) return fail(env, EINVAL);
  char **command = texts_of(env, given[0]), **environment = texts_of(env, given[1]);
  char folder[4096];
  size_t length;
  bool has_folder = napi_get_value_string_utf8(env, given[2], folder, sizeof folder, &length) == napi_ok;
  int descriptors[max_descriptors], moved[max_descriptors];
  for (int i = 0; i < max_descriptors; i++) moved[i] = -1;
  bool new_session = false;
  napi_get_value_bool(env, given[4], &new_session);
  int targets = descriptors_of(env, given[3], descriptors, moved);
  int code = EINVAL;
  pid_t pid;
  if (is_complete(command, env, given[0]) && command[0] != NULL && is_complete(environment, env, given[1]) && targets >= 0) {
    code = start(&pid, command, environment, has_folder ? folder : NULL, descriptors, targets, new_session);
  }
  for (int i = 0; i < max_descriptors; i++) {
    if (moved[i] >= 0) close(moved[i]);
  }
  free_texts(command);
  free_texts(environment);
  if (code != 0) return fail(env, code);
  struct child *child = watch(env, pid, given[5], &code);
  if (child == NULL) return fail(env, code);
  napi_create_array_with_length(env, 2, &result);
  napi_create_int32(env, pid, &pid_value);
  napi_create_external(env, child->tell, NULL, NULL, &handle);
  napi_set_element(env, result, 0, pid_value);
  napi_set_element(env, result, 1, handle);
  return result;
}

// hold(handle, holds): whether the child keeps the event loop alive. Not to be called after its end was told.
static napi_value hold(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value given[2];
  void *tell;
  bool holds = true;
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok || count < 2) return fail(env, EINVAL);
  if (napi_get_value_external(env, given[0], &tell) != napi_ok) return fail(env, EINVAL);
  napi_get_value_bool(env, given[1], &holds);
  if (holds) {
    napi_ref_threadsafe_function(env, tell);
  } else {
    napi_unref_threadsafe_function(env, tell);
  }
  return NULL;
}

// Whether the kernel tells of the end of a process by a descriptor, without which spawn() fails.
static bool has_pidfd(void) {
  int pidfd = open_pidfd(getpid());
  if (pidfd >= 0) close(pidfd);
  return pidfd >= 0;
}

NAPI_MODULE_INIT() {
  const struct {
    const char *name;
    napi_callback function;
  } functions[] = {{"pipe", make_pipe}, {"socketPair", make_socket_pair}, {"spawn", spawn_child}, {"hold", hold}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    napi_value function;
    if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL, &function) != napi_ok)
      return NULL;
    if (napi_set_named_property(env, exports, functions[i].name, function) != napi_ok) return NULL;
  }
  napi_value works;
  if (napi_get_boolean(env, has_pidfd(), &works) != napi_ok) return NULL;
  if (napi_set_named_property(env, exports, "canSpawn", works) != napi_ok) return NULL;
  return exports;
}
