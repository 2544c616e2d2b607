#define _GNU_SOURCE
#include "state.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uint64_t page_bytes(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

static uint64_t whole(uint64_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }

// A rollback knows the mappings of the stand-in by the name of their files.
static int make_file(uint64_t bytes) {
  int file = memfd_create("gpuwhisk-cudasim", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)bytes) < 0) {
    close(file);
    return -1;
  }
  return file;
}

static bool write_pages(int file, const char *from, uint64_t bytes) {
  uint64_t page = page_bytes();
  for (uint64_t at = 0; at < bytes; at += page) {
    unsigned char present = 0;
    if (mincore((void *)(from + at), page, &present) < 0) return false;
    // A page that was never written takes no memory.
    if ((present & 1) != 0 && pwrite(file, from + at, page, (off_t)at) != (ssize_t)page) return false;
  }
  return true;
}

bool back_with(uint64_t offset, uint64_t bytes, int file) {
  void *place = device_memory() + offset;
  return mmap(place, whole(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == place;
}

bool back_anew(uint64_t offset, uint64_t bytes, int *file) {
  int made = make_file(whole(bytes));
  bool done = made >= 0 && write_pages(made, device_memory() + offset, whole(bytes)) && back_with(offset, bytes, made);
  if (made >= 0 && (!done || file == NULL)) close(made);
  if (file != NULL) *file = done ? made : -1;
  return done;
}

bool back_empty(uint64_t offset, uint64_t bytes) {
  int made = make_file(whole(bytes));
  bool done = made >= 0 && back_with(offset, bytes, made);
  if (made >= 0) close(made);
  return done;
}

// A shared mapping that is moved with a length of 0 stays where it is, too (mremap(2)).
bool show_at(uint64_t offset, uint64_t bytes, void *place) {
  return mremap(device_memory() + offset, 0, whole(bytes), MREMAP_MAYMOVE | MREMAP_FIXED, place) == place;
}
