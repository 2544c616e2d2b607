// Reads the spec: words such as "bind", "/usr", "/usr", "ro", ended by "wait", or by "exec" and the command.
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_SPEC_BYTES = 1024 * 1024 };

static const struct {
  const char *word;
  enum operation op;
  int args;
} words[] = {
    {"make-dir", OP_MAKE_DIR, 1},       {"write", OP_WRITE, 2},         {"join", OP_JOIN, 1},
    {"join-dir", OP_JOIN_DIR, 1},       {"oom-count", OP_OOM_COUNT, 1}, {"oom-event", OP_OOM_EVENT, 1},
    {"watch", OP_WATCH, 1},             {"namespace", OP_NAMESPACE, 1}, {"id", OP_ID, 2},
    {"root", OP_ROOT, 1},               {"own", OP_OWN, 1},             {"tmpfs", OP_TMPFS, 4},
    {"bind", OP_BIND, 3},               {"link", OP_LINK, 2},           {"proc", OP_PROC, 0},
    {"mask", OP_MASK, 1},               {"veth", OP_VETH, 4},           {"rlimit", OP_RLIMIT, 2},
    {"join-pid", OP_JOIN_PID, 1},       {"domain", OP_DOMAIN, 0},          {"forget", OP_FORGET, 1},
    {"filter", OP_FILTER, 0},           {"traces", OP_TRACES, 0},       {"cwd", OP_CWD, 1},
    {"hostname", OP_HOSTNAME, 1},       {"keep-socket", OP_KEEP_SOCKET, 0}, {"keep-runs", OP_KEEP_RUNS, 0},
    {"env", OP_ENV, 1},
};

static const struct {
  const char *word;
  int flag;
} namespaces[] = {
    {"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},       {"ipc", CLONE_NEWIPC},
    {"uts", CLONE_NEWUTS},   {"net", CLONE_NEWNET},  {"cgroup", CLONE_NEWCGROUP},
};

static void read_fully(int from, void *into, size_t length) {
  char *at = into;
  while (length > 0) {
    ssize_t got = read(from, at, length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(EXIT_SETUP_FAILED); // The writer is gone, and with it the platform or the launcher.
    at += got;
    length -= (size_t)got;
  }
}

long number(const char *text) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0') fail("spec", 0, text);
  return value;
}

static void gather(struct spec *spec, const struct step *step) {
  if (step->op == OP_ID) {
    spec->inner = (uid_t)number(step->args[0]);
    spec->outer = (uid_t)number(step->args[1]);
    spec->has_id = true;
  } else if (step->op == OP_NAMESPACE) {
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++) {
      if (strcmp(namespaces[i].word, step->args[0]) == 0) {
        spec->namespaces |= namespaces[i].flag;
        return;
      }
    }
    fail("spec", 0, step->args[0]);
  } else if (step->op == OP_ENV) {
    if (spec->environment_count == MAX_ARGS) fail("spec", 0, "too many environment variables");
    spec->environment[spec->environment_count++] = (char *)step->args[0];
  }
}

static char *next_word(char **at, const char *end) {
  if (*at >= end) fail("spec", 0, "it ends early");
  char *word = *at;
  *at += strlen(word) + 1;
  return word;
}

static void add_step(struct spec *spec, const char *word, char **at, const char *end) {
  if (spec->count == MAX_STEPS) fail("spec", 0, "too many steps");
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(words[i].word, word) != 0) continue;
    struct step *step = &spec->steps[spec->count++];
    step->op = words[i].op;
    for (int arg = 0; arg < words[i].args; arg++) step->args[arg] = next_word(at, end);
    gather(spec, step);
    return;
  }
  fail("spec", 0, word);
}

void read_spec(struct spec *spec, int from) {
  uint8_t header[4];
  read_fully(from, header, sizeof header);
  uint32_t length = header[0] | header[1] << 8 | header[2] << 16 | (uint32_t)header[3] << 24;
  if (length == 0 || length > MAX_SPEC_BYTES) fail("spec", 0, "its length");
  char *text = malloc(length);
  if (text == NULL) fail("spec", ENOMEM, "reading it");
  read_fully(from, text, length);
  spec->message = text;
  spec->message_length = length;
  if (text[length - 1] != '\0') fail("spec", 0, "it does not end with NUL");

  char *at = text;
  const char *end = text + length;
  for (;;) {
    char *word = next_word(&at, end);
    if (strcmp(word, "wait") == 0) return;
    if (strcmp(word, "exec") == 0) break;
    add_step(spec, word, &at, end);
  }
  int count = 0;
  while (at < end) {
    if (count == MAX_ARGS) fail("spec", 0, "too many arguments");
    spec->command[count++] = next_word(&at, end);
  }
  if (count == 0) fail("spec", 0, "no command");
}

static void write_fully(int to, const void *data, size_t length) {
  const char *at = data;
  while (length > 0) {
    ssize_t sent = send(to, at, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(EXIT_SETUP_FAILED); // The reader has failed and said so.
    at += sent;
    length -= (size_t)sent;
  }
}

void forward_spec(const struct spec *spec, int to) {
  uint32_t length = spec->message_length;
  uint8_t header[4] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16), (uint8_t)(length >> 24)};
  write_fully(to, header, sizeof header);
  write_fully(to, spec->message, length);
}

const struct step *find_step(const struct spec *spec, enum operation op) {
  for (int i = 0; i < spec->count; i++) {
    if (spec->steps[i].op == op) return &spec->steps[i];
  }
  return NULL;
}

bool joins_others(const struct spec *spec) { return find_step(spec, OP_JOIN_PID) != NULL; }

bool has_init(const struct spec *spec) { return (spec->namespaces & CLONE_NEWPID) || joins_others(spec); }
