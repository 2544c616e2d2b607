// Who asks for an entry point of the driver gets the hook. Programs of CUDA 11 to 13 open libcuda.so.1 and look up
// cuGetProcAddress with dlsym; others look everything up with dlsym, or are linked with libcuda and bind to the hooks.
#define _GNU_SOURCE
#include "tokens.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

// Only their addresses are needed here.
#define HOOK(symbol, name, since, per_thread) extern void symbol(void);
#include "hooks.def"
#undef HOOK

const struct hook_row hook_rows[HOOK_COUNT] = {
#define HOOK(symbol, name, since, per_thread) {#symbol, name, since, per_thread, (void *)symbol},
#include "hooks.def"
#undef HOOK
};

void *hook_reals[HOOK_COUNT];

typedef void *lookup_function(void *handle, const char *name);
typedef void *versioned_lookup_function(void *handle, const char *name, const char *version);

static lookup_function *real_dlsym;
static versioned_lookup_function *real_dlvsym;

/** What the C library's symbol tables say of its own dlsym and dlvsym: the linker would answer with the hooks below. */
struct search {
  lookup_function *dlsym;
  versioned_lookup_function *dlvsym;
};

/** Symbols in an object's table: the hash table knows. */
static size_t count_symbols(const uint32_t *gnu_hash) {
  uint32_t bucket_count = gnu_hash[0], first = gnu_hash[1], bloom_words = gnu_hash[2], last = 0;
  const uint32_t *buckets = gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t *chain = buckets + bucket_count;
  for (uint32_t i = 0; i < bucket_count; i += 1)
    if (buckets[i] > last) last = buckets[i];
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) last += 1;
  return last + 1;
}

static int look_into(struct dl_phdr_info *object, size_t size, void *data) {
  (void)size;
  struct search *search = data;
  const char *file = strrchr(object->dlpi_name, '/');
  file = file != NULL ? file + 1 : object->dlpi_name;
  if (strncmp(file, "libc.", 5) != 0 && strncmp(file, "libdl.", 6) != 0 && strncmp(file, "ld-musl", 7) != 0) return 0;
  const ElfW(Dyn) *dynamic = NULL;
  for (int i = 0; i < object->dlpi_phnum; i += 1)
    if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
  const ElfW(Sym) *symbols = NULL;
  const char *names = NULL;
  const uint32_t *hash = NULL;
  for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic += 1) {
    ElfW(Addr) address = dynamic->d_un.d_ptr;
    if (address < object->dlpi_addr) address += object->dlpi_addr; // glibc relocates these in place, musl does not
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym) *)address;
    if (dynamic->d_tag == DT_STRTAB) names = (const char *)address;
    if (dynamic->d_tag == DT_GNU_HASH) hash = (const uint32_t *)address;
  }
  if (symbols == NULL || names == NULL || hash == NULL) return 0;
  size_t count = count_symbols(hash);
  for (size_t i = 0; i < count; i += 1) {
    if (symbols[i].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC) continue;
    void *address = (void *)(object->dlpi_addr + symbols[i].st_value);
    if (search->dlsym == NULL && strcmp(names + symbols[i].st_name, "dlsym") == 0) search->dlsym = address;
    if (search->dlvsym == NULL && strcmp(names + symbols[i].st_name, "dlvsym") == 0) search->dlvsym = address;
  }
  return search->dlsym != NULL && search->dlvsym != NULL;
}

static void find_lookups(void) {
  struct search search = {0};
  dl_iterate_phdr(look_into, &search);
  if (search.dlsym == NULL) say("the C library has no dlsym; this program cannot run with kernel tokens");
  if (search.dlsym == NULL) __builtin_trap();
  STORE(real_dlvsym, search.dlvsym);
  __atomic_store_n(&real_dlsym, search.dlsym, __ATOMIC_RELEASE);
}

static inline lookup_function *lookup(void) {
  if (UNLIKELY(__atomic_load_n(&real_dlsym, __ATOMIC_ACQUIRE) == NULL)) find_lookups();
  return real_dlsym;
}

void *driver_function(const char *symbol) {
  static void *driver;
  void *handle = LOAD(driver);
  if (handle == NULL) {
    handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) handle = dlopen("libcuda.so.1", RTLD_LAZY);
    if (handle == NULL) return NULL;
    STORE(driver, handle);
  }
  return lookup()(handle, symbol);
}

void *hook_resolve(enum hook hook) {
  void *real = driver_function(hook_rows[hook].symbol);
  if (real != NULL) STORE(hook_reals[hook], real);
  return real;
}

void *hook_replace(enum hook hook, void *real) {
  void *wrapper = hook_rows[hook].wrapper;
  if (real == NULL || real == wrapper) return real;
  STORE(hook_reals[hook], real);
  return wrapper;
}

static void *replace_by_symbol(const char *symbol, void *real) {
  for (int i = 0; i < HOOK_COUNT; i += 1)
    if (strcmp(symbol, hook_rows[i].symbol) == 0) return hook_replace(i, real);
  return real;
}

static inline bool is_of_driver(const char *name) { return name[0] == 'c' && name[1] == 'u'; }

// The C library finds out by the return address who asks with RTLD_NEXT: the jumps at the end of these keep it.
EXPORT void *dlsym(void *restrict handle, const char *restrict name) {
  lookup_function *real = lookup();
  if (LIKELY(!is_of_driver(name))) return real(handle, name);
  return replace_by_symbol(name, real(handle, name));
}

EXPORT void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version) {
  lookup();
  versioned_lookup_function *real = real_dlvsym;
  if (UNLIKELY(real == NULL)) return NULL;
  if (LIKELY(!is_of_driver(name))) return real(handle, name, version);
  return replace_by_symbol(name, real(handle, name, version));
}
