// The shares that this process draws on, and what happens when their server is missing, silent or new.
#define _GNU_SOURCE
#include "tokens.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DEVICES = 64, FIRST_RETRY_S = 1, LAST_RETRY_S = 32 };

/** A page limits nothing until a server's is mapped over it, so that launches need not ask whether there is one. */
static struct tokens_page pages[MAX_ACCOUNTS + 1] __attribute__((aligned(TOKENS_PAGE_BYTES)));

struct account accounts[MAX_ACCOUNTS + 1];
static struct account *const unlimited = &accounts[MAX_ACCOUNTS];
int account_count = 1;
unsigned accounts_attention;

static char socket_path[108];
static char tickets[MAX_ACCOUNTS][TOKENS_TICKET_BYTES];
static int64_t retry_at_ns;
static int retry_s = FIRST_RETRY_S;
static int attending;
/** For each device the index of its account plus one; MAX_ACCOUNTS + 1 for none; 0: not looked up yet. */
static uint8_t account_of[MAX_DEVICES];

int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

void say(const char *text) { dprintf(2, "gpuwhisk: kernel tokens: %s\n", text); }

static void limit_nothing(struct tokens_page *page) {
  page->granted = page->budget = page->memory_cap = INT64_MAX;
}

/** In the child: it has the parent's pages, and must register for itself. Its device memory is not charged. */
static void after_fork(void) {
  for (int i = 0; i < account_count; i += 1) accounts[i].process = -1;
  ledger_reset();
  STORE(attending, 0);
  if (socket_path[0] != 0) STORE(accounts_attention, ATTENTION_CONNECT);
}

static void read_tickets(const char *list) {
  account_count = 0;
  while (list != NULL && *list != 0 && account_count < MAX_ACCOUNTS) {
    size_t length = strcspn(list, ",");
    if (length > 0 && length < TOKENS_TICKET_BYTES) memcpy(tickets[account_count++], list, length);
    else say("a ticket has the wrong length and is not used");
    list += length + (list[length] == ',');
  }
}

__attribute__((constructor)) static void initialize(void) {
  for (int i = 0; i <= MAX_ACCOUNTS; i += 1) {
    accounts[i] = (struct account){.page = &pages[i], .process = -1};
    limit_nothing(&pages[i]);
  }
  pthread_atfork(NULL, NULL, after_fork);

  const char *path = getenv("GPUWHISK_TOKENS_SOCKET");
  if (path == NULL || path[0] == 0) return;
  read_tickets(getenv("GPUWHISK_TOKENS_TICKET"));
  if (account_count == 0) {
    account_count = 1;
    say("there is a server but no ticket; kernels are not counted");
    return;
  }
  if (strlen(path) >= sizeof socket_path) {
    say("the path of the server's socket is too long; kernels are not counted");
    return;
  }
  strcpy(socket_path, path);
  accounts_attention = ATTENTION_CONNECT;
}

/** Whether a server keeps this page's time. */
static bool is_served(const struct account *account) {
  return account->process >= 0 && monotonic_ns() - LOAD(account->page->tick_ns) < TOKENS_SILENCE_NS;
}

static void connect_all(void) {
  const char *problem = NULL;
  for (int i = 0; i < account_count && problem == NULL; i += 1)
    if (!is_served(&accounts[i])) problem = connect_account(socket_path, tickets[i], &accounts[i]);
  bool first = (LOAD(accounts_attention) & ATTENTION_CONNECT) != 0;
  if (problem == NULL) {
    if (!first) say("the server is back; kernels are counted");
    retry_s = FIRST_RETRY_S;
    STORE(accounts_attention, 0);
    return;
  }
  if (first) {
    char line[256];
    snprintf(line, sizeof line, "%s; kernels are not counted until it answers", problem);
    say(line);
  }
  retry_at_ns = monotonic_ns() + retry_s * (int64_t)1000000000;
  retry_s = retry_s * 2 < LAST_RETRY_S ? retry_s * 2 : LAST_RETRY_S;
  STORE(accounts_attention, ATTENTION_RETRY);
}

void accounts_attend(void) {
  if (LOAD(accounts_attention) == ATTENTION_RETRY && monotonic_ns() < LOAD(retry_at_ns)) return;
  // One thread does it; the others go on meanwhile.
  if (__atomic_exchange_n(&attending, 1, __ATOMIC_ACQUIRE) != 0) return;
  if (LOAD(accounts_attention) != 0) connect_all();
  __atomic_store_n(&attending, 0, __ATOMIC_RELEASE);
}

void account_open(struct account *account) {
  // A server that was only stopped takes the page back with its next tick.
  if (__atomic_exchange_n(&account->page->granted, TOKENS_UNLIMITED, __ATOMIC_SEQ_CST) == TOKENS_UNLIMITED) return;
  __atomic_fetch_add(&account->page->opened, 1, __ATOMIC_RELAXED);
  say("the server has been silent for a second; kernels go on uncounted");
  STORE(retry_at_ns, monotonic_ns() + FIRST_RETRY_S * (int64_t)1000000000);
  __atomic_fetch_or(&accounts_attention, ATTENTION_RETRY, __ATOMIC_SEQ_CST);
}

static uint8_t find_account(CUdevice device) {
  CUresult (*get_uuid)(void *, CUdevice) = driver_function("cuDeviceGetUuid_v2");
  if (get_uuid == NULL) get_uuid = driver_function("cuDeviceGetUuid");
  uint8_t uuid[16];
  if (get_uuid == NULL || get_uuid(uuid, device) != CUDA_SUCCESS) return 0;
  for (int i = 0; i < account_count; i += 1)
    if (memcmp(uuid, accounts[i].page->device, sizeof uuid) == 0) return (uint8_t)(i + 1);
  return MAX_ACCOUNTS + 1;
}

struct account *account_of_device(CUdevice device) {
  if (account_count == 1) return &accounts[0];
  if (device < 0 || device >= MAX_DEVICES) return unlimited;
  uint8_t found = LOAD(account_of[device]);
  if (found == 0) {
    found = find_account(device);
    // Before all have their pages no device is known for certain.
    if (LOAD(accounts_attention) == 0) STORE(account_of[device], found);
  }
  return found == 0 || found > MAX_ACCOUNTS ? unlimited : &accounts[found - 1];
}

struct account *account_of_current(void) {
  static CUresult (*get_device)(CUdevice *);
  CUresult (*ask)(CUdevice *) = LOAD(get_device);
  if (ask == NULL) {
    ask = driver_function("cuCtxGetDevice");
    if (ask == NULL) return unlimited;
    STORE(get_device, ask);
  }
  CUdevice device;
  return ask(&device) == CUDA_SUCCESS ? account_of_device(device) : unlimited;
}
