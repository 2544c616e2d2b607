// Device memory against the cap. Every process counts for itself, so that the server can give back what a killed one
// held; the cap is on the sum.
#include "tokens.h"

int64_t memory_used(const struct account *account) {
  int64_t used = 0;
  for (int i = 0; i < TOKENS_PROCESSES; i += 1) used += LOAD(account->page->memory_used[i]);
  return used;
}

bool charge_memory(struct account *account, int64_t bytes) {
  int process = LOAD(account->process);
  if (process < 0) return true;
  int64_t cap = LOAD(account->page->memory_cap);
  if (bytes > cap) return false;
  // Counted before it is compared: of two that ask at once for the last of it none gets too much.
  __atomic_fetch_add(&account->page->memory_used[process], bytes, __ATOMIC_SEQ_CST);
  if (memory_used(account) <= cap) return true;
  __atomic_fetch_sub(&account->page->memory_used[process], bytes, __ATOMIC_SEQ_CST);
  return false;
}

void discharge_memory(struct account *account, int64_t bytes) {
  int process = LOAD(account->process);
  if (process >= 0) __atomic_fetch_sub(&account->page->memory_used[process], bytes, __ATOMIC_SEQ_CST);
}
