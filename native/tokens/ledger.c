// Every allocation of device memory that this process holds, found by its key or by its age. The ledger lies in shared
// memory, which a pre-warmer's rollback does not put back: what a function allocated is still there after its crash.
#define _GNU_SOURCE
#include "tokens.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_ALLOCATIONS = 1 << 16, BUCKETS = 1 << 16, PATIENCE = 1000 };

/** Indices into `entries`; 0 is none, so that fresh memory is an empty ledger and only what is used takes room. */
struct entry {
  struct allocation allocation;
  uint32_t next; // in its bucket, or in the list of free ones
  uint32_t newer, older;
};
struct ledger {
  int owner; // thread that holds the lock
  uint32_t ever_used, first_free, newest;
  uint64_t last_number;
  uint32_t buckets[BUCKETS];
  struct entry entries[MAX_ALLOCATIONS + 1];
};

static struct ledger *ledger;

static struct ledger *map_ledger(void *at, int flags) {
  void *mapped = mmap(at, sizeof(struct ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

/** Returns whether there is a ledger, and that it is this thread's until unlock(). */
static bool lock(void) {
  struct ledger *present = __atomic_load_n(&ledger, __ATOMIC_ACQUIRE);
  if (present == NULL) {
    struct ledger *mine = map_ledger(NULL, 0);
    if (mine == NULL) return false;
    if (__atomic_compare_exchange_n(&ledger, &present, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) present = mine;
    else munmap(mine, sizeof *mine);
  }
  int self = (int)syscall(SYS_gettid);
  for (int tries = 0;; tries += 1) {
    int owner = 0;
    if (__atomic_compare_exchange_n(&present->owner, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
    // Its own: the thread was taken out of here, by a rollback. Another's that is gone: it was killed in here.
    if (owner == self) return true;
    bool is_gone = tries % PATIENCE == PATIENCE - 1 && syscall(SYS_tgkill, getpid(), owner, 0) < 0 && errno == ESRCH;
    if (is_gone && __atomic_compare_exchange_n(&present->owner, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return true;
    sched_yield();
  }
}

static void unlock(void) { __atomic_store_n(&ledger->owner, 0, __ATOMIC_RELEASE); }

void ledger_reset(void) {
  if (ledger == NULL) return;
  // What is mapped is the parent's. Without room for a new one the child has none, and its allocations fail.
  if (map_ledger(ledger, MAP_FIXED) == NULL) ledger = NULL;
}

static uint32_t *bucket_of(uint64_t key) { return &ledger->buckets[(key * 0x9e3779b97f4a7c15u) >> (64 - 16)]; }

/** Index of an unused entry, 0 if there is none. */
static uint32_t take_entry(void) {
  uint32_t index = ledger->first_free;
  if (index != 0) ledger->first_free = ledger->entries[index].next;
  else if (ledger->ever_used < MAX_ALLOCATIONS) index = ++ledger->ever_used;
  return index;
}

bool ledger_add(const struct allocation *allocation) {
  if (!lock()) return false;
  uint32_t index = take_entry();
  if (index != 0) {
    uint32_t *bucket = bucket_of(allocation->key);
    ledger->entries[index] = (struct entry){.allocation = *allocation, .next = *bucket, .older = ledger->newest};
    ledger->entries[index].allocation.number = ++ledger->last_number;
    if (ledger->newest != 0) ledger->entries[ledger->newest].newer = index;
    ledger->newest = *bucket = index;
  }
  unlock();
  return index != 0;
}

/** Takes an entry out of its bucket and the list. */
static void take_out(uint32_t index, struct allocation *removed) {
  struct entry *entry = &ledger->entries[index];
  *removed = entry->allocation;
  uint32_t *link = bucket_of(entry->allocation.key);
  while (*link != index) link = &ledger->entries[*link].next;
  *link = entry->next;
  if (entry->newer != 0) ledger->entries[entry->newer].older = entry->older;
  else ledger->newest = entry->older;
  if (entry->older != 0) ledger->entries[entry->older].newer = entry->newer;
  entry->next = ledger->first_free;
  ledger->first_free = index;
}

bool ledger_remove(enum allocation_kind kind, uint64_t key, struct allocation *removed) {
  if (!lock()) return false;
  uint32_t index = *bucket_of(key);
  while (index != 0) {
    const struct allocation *found = &ledger->entries[index].allocation;
    if (found->kind == kind && found->key == key) break;
    index = ledger->entries[index].next;
  }
  if (index != 0) take_out(index, removed);
  unlock();
  return index != 0;
}

bool ledger_remove_after(uint64_t mark, struct allocation *removed) {
  if (!lock()) return false;
  uint32_t index = ledger->newest;
  while (index != 0 && ledger->entries[index].allocation.kind == CONTEXT) index = ledger->entries[index].older;
  bool found = index != 0 && ledger->entries[index].allocation.number > mark;
  if (found) take_out(index, removed);
  unlock();
  return found;
}

bool ledger_remove_of(CUcontext context, struct allocation *removed) {
  if (!lock()) return false;
  uint32_t index = ledger->newest;
  while (index != 0 && ledger->entries[index].allocation.context != context) index = ledger->entries[index].older;
  if (index != 0) take_out(index, removed);
  unlock();
  return index != 0;
}

uint64_t ledger_mark(void) {
  if (!lock()) return 0;
  uint64_t mark = ledger->last_number;
  unlock();
  return mark;
}

int64_t ledger_bytes(uint32_t account) {
  if (!lock()) return 0;
  int64_t bytes = 0;
  for (uint32_t index = ledger->newest; index != 0; index = ledger->entries[index].older)
    if (ledger->entries[index].allocation.account == account) bytes += ledger->entries[index].allocation.bytes;
  unlock();
  return bytes;
}
