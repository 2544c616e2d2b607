#include "elf_object.h"

#include "failure.h"

#include <cstdio>
#include <cstring>
#include <elf.h>
#include <optional>

namespace gpuwhisk::inject {
namespace {

// A table of the object, copied out because nothing says that it is aligned; nothing if it is not all there.
template <typename Entry> std::optional<Entry> entry_at(Bytes object, uint64_t offset) {
  if (offset > object.size() || object.size() - offset < sizeof(Entry)) return std::nullopt;
  Entry entry;
  std::memcpy(&entry, object.data() + offset, sizeof entry);
  return entry;
}

[[noreturn]] void refuse(const std::string &why) { throw Failure("payload", "The shared object " + why); }

void check_dynamic(Bytes object, const Elf64_Phdr &segment) {
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
    std::optional<Elf64_Dyn> entry = entry_at<Elf64_Dyn>(object, segment.p_offset + at);
    if (!entry || entry->d_tag == DT_NULL) return;
    bool relocates_code = entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL);
    if (relocates_code) refuse("has text relocations: compile it with -fPIC.");
  }
}

std::string text_at(Bytes object, uint64_t offset) {
  std::string text;
  for (; offset < object.size() && object[offset] != std::byte{0} && text.size() < 200; offset++)
    text += static_cast<char>(object[offset]);
  return text;
}

} // namespace

void check_object(Bytes object) {
  std::optional<Elf64_Ehdr> header = entry_at<Elf64_Ehdr>(object, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) refuse("is no ELF file.");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_machine != EM_X86_64)
    refuse("is for another machine: this one takes 64-bit x86-64.");
  if (header->e_type != ET_DYN || header->e_phentsize != sizeof(Elf64_Phdr))
    refuse("is not a shared object (link it with -shared).");
  bool loads = false, dynamic = false;
  for (unsigned i = 0; i < header->e_phnum; i++) {
    std::optional<Elf64_Phdr> segment = entry_at<Elf64_Phdr>(object, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) refuse("is truncated.");
    if (segment->p_type == PT_LOAD || segment->p_type == PT_DYNAMIC) {
      if (segment->p_offset > object.size() || segment->p_filesz > object.size() - segment->p_offset)
        refuse("is truncated.");
    }
    if (segment->p_type == PT_INTERP) refuse("is a program, not a shared object (link it with -shared).");
    if (segment->p_type == PT_LOAD) {
      loads = true;
      if (segment->p_flags & PF_W && segment->p_flags & PF_X) refuse("has a segment that is writable and executable.");
    }
    if (segment->p_type == PT_GNU_STACK && segment->p_flags & PF_X) refuse("asks for an executable stack.");
    if (segment->p_type == PT_DYNAMIC) {
      dynamic = true;
      check_dynamic(object, *segment);
    }
  }
  if (!loads || !dynamic) refuse("has nothing to load.");
}

std::string name_in_object(Bytes object, uint64_t offset) {
  char plain[32];
  std::snprintf(plain, sizeof plain, "+0x%llx", static_cast<unsigned long long>(offset));
  std::optional<Elf64_Ehdr> header = entry_at<Elf64_Ehdr>(object, 0);
  if (!header) return plain;
  // The full table if there is one, else that of exported symbols.
  for (uint32_t kind : {SHT_SYMTAB, SHT_DYNSYM})
    for (unsigned i = 0; i < header->e_shnum; i++) {
      std::optional<Elf64_Shdr> table = entry_at<Elf64_Shdr>(object, header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!table || table->sh_type != kind) continue;
      std::optional<Elf64_Shdr> names =
          entry_at<Elf64_Shdr>(object, header->e_shoff + table->sh_link * sizeof(Elf64_Shdr));
      if (!names) continue;
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        std::optional<Elf64_Sym> symbol = entry_at<Elf64_Sym>(object, table->sh_offset + at);
        if (!symbol) break;
        bool holds = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && offset >= symbol->st_value &&
                     offset - symbol->st_value < symbol->st_size;
        if (!holds) continue;
        std::snprintf(plain, sizeof plain, "+0x%llx", static_cast<unsigned long long>(offset - symbol->st_value));
        return text_at(object, names->sh_offset + symbol->st_name) + plain;
      }
    }
  return plain;
}

} // namespace gpuwhisk::inject
