#include "ptx.h"

#include "cpu_kernels.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char comment[] = "// gpuwhisk ";

struct CUfunc_st *make_function(struct CUmod_st *module, const char *name, size_t length) {
  struct CUfunc_st *function = heap_take(sizeof *function);
  char *copy = heap_take(length + 1);
  if (function == NULL || copy == NULL) return NULL;
  memcpy(copy, name, length);
  function->kind = FUNCTION;
  function->module = module;
  function->name = copy;
  function->threads = 256;
  function->blocks_per_sm = 8;
  function->ns_per_block = 5000;
  function->sensitivity = function->pressure = 1;
  function->scaled_by = function->cpu = -1;
  function->next = module->functions;
  module->functions = function;
  return function;
}

static bool has_word(const char *text, const char *word) { return strncmp(text, word, strlen(word)) == 0; }

static void read_costs(const char *line, const char *end, struct CUfunc_st *function) {
  function->declared = true;
  while (line < end) {
    while (line < end && isspace((unsigned char)*line)) line++;
    const char *equals = memchr(line, '=', (size_t)(end - line));
    if (equals == NULL) return;
    const char *value = equals + 1;
    double number = strtod(value, NULL);
    bool sound = number >= 0 && number < 1e15;
    size_t length = 0;
    while (value + length < end && !isspace((unsigned char)value[length])) length++;
    if (has_word(line, "cpu=")) function->cpu = find_cpu_kernel(value, length);
    else if (!sound) function->declared = false;
    else if (has_word(line, "threads=")) function->threads = number < 1 ? 1 : (uint32_t)number;
    else if (has_word(line, "blocksPerSm=")) function->blocks_per_sm = number < 1 ? 1 : (uint32_t)number;
    else if (has_word(line, "nsPerBlock=")) function->ns_per_block = number;
    else if (has_word(line, "dramBytesPerBlock=")) function->dram_bytes_per_block = number;
    else if (has_word(line, "sensitivity=")) function->sensitivity = number;
    else if (has_word(line, "pressure=")) function->pressure = number;
    else if (has_word(line, "scaledBy=")) function->scaled_by = (int)number;
    else if (has_word(line, "faults=")) function->faults = number != 0;
    line = value + length;
  }
}

static uint32_t size_of_type(const char *type) {
  if (has_word(type, ".pred")) return 1;
  const char *digits = type + strcspn(type, "0123456789");
  long bits = strtol(digits, NULL, 10);
  return bits >= 8 && bits <= 128 ? (uint32_t)bits / 8 : 0;
}

// `.param .u64 .ptr .global .align 4 name`, `.param .align 8 .b8 name[24]`
static bool read_param(const char *text, const char *end, struct CUfunc_st *function) {
  if (function->param_count == MAX_PARAMS) return false;
  uint32_t size = 0, alignment = 0;
  for (const char *at = text; at < end; at++) {
    if (*at == '[') {
      uint32_t elements = (uint32_t)strtoul(at + 1, NULL, 10);
      if (elements == 0 || elements > 4096) return false;
      size *= elements;
      break;
    }
    if (*at != '.') continue;
    if (has_word(at, ".align") && size == 0) alignment = (uint32_t)strtoul(at + 6, NULL, 10);
    else if (size == 0 && strchr("usbf", at[1]) != NULL && isdigit((unsigned char)at[2])) size = size_of_type(at);
  }
  if (size == 0) return false;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) alignment = size > 8 ? 8 : size;
  uint32_t offset = (function->param_bytes + alignment - 1) / alignment * alignment;
  function->params[function->param_count].offset = offset;
  function->params[function->param_count++].size = size;
  function->param_bytes = offset + size;
  return true;
}

// From behind `.entry`. Returns where to go on, NULL if it makes no sense.
static const char *read_entry(const char *at, const char *costs, struct CUmod_st *module, CUresult *result) {
  at += strspn(at, " \t\r\n");
  size_t length = strcspn(at, " \t\r\n({");
  *result = CUDA_ERROR_OUT_OF_MEMORY;
  struct CUfunc_st *function = length == 0 || length > 4096 ? NULL : make_function(module, at, length);
  if (function == NULL) return NULL;
  if (costs != NULL) read_costs(costs, costs + strcspn(costs, "\n"), function);
  *result = CUDA_ERROR_INVALID_PTX;
  at += length;
  at += strspn(at, " \t\r\n");
  if (*at != '(') return at;
  const char *close = strchr(at, ')');
  if (close == NULL) return NULL;
  for (at++; at < close;) {
    size_t piece = strcspn(at, ",)");
    if (strspn(at, " \t\r\n") < piece && !read_param(at, at + piece, function)) return NULL;
    at += piece + 1;
  }
  return close + 1;
}

CUresult read_ptx(const char *text, struct CUmod_st *module) {
  if (strstr(text, ".version") == NULL) return CUDA_ERROR_INVALID_IMAGE;
  const char *costs = NULL;
  for (const char *at = text; *at != '\0';) {
    if (has_word(at, comment)) costs = at + sizeof comment - 1;
    if (has_word(at, "//")) {
      at += strcspn(at, "\n");
    } else if (has_word(at, "/*")) {
      const char *end = strstr(at, "*/");
      if (end == NULL) return CUDA_ERROR_INVALID_PTX;
      at = end + 2;
    } else if (has_word(at, ".entry") && isspace((unsigned char)at[6])) {
      CUresult result;
      at = read_entry(at + 6, costs, module, &result);
      if (at == NULL) return result;
      costs = NULL;
    } else {
      at++;
    }
  }
  return module->functions == NULL ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}
