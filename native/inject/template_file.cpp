// The file of a template: a header, the image, and from a page's border on its pages.
#include "failure.h"
#include "pagemap.h"
#include "template.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>

namespace gpuwhisk::inject {
namespace {

class Writer {
public:
  template <typename Value> void plain(const Value &value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  void text(std::string_view value) {
    plain(static_cast<uint64_t>(value.size()));
    bytes.append(value);
  }
  void texts(const std::vector<std::string> &values) {
    plain(static_cast<uint64_t>(values.size()));
    for (const std::string &value : values) text(value);
  }
  template <typename Value> void all(const std::vector<Value> &values) {
    plain(static_cast<uint64_t>(values.size()));
    for (const Value &value : values) plain(value);
  }
  std::string bytes;
};

class Reader {
public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  template <typename Value> void plain(Value &value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  std::string text() {
    uint64_t length;
    plain(length);
    return std::string(take(length));
  }
  uint64_t count() {
    uint64_t value;
    plain(value);
    if (value > left_.size()) refuse(); // Each entry has a byte at least.
    return value;
  }
  void texts(std::vector<std::string> &values) {
    values.resize(count());
    for (std::string &value : values) value = text();
  }
  template <typename Value> void all(std::vector<Value> &values) {
    values.resize(count());
    for (Value &value : values) plain(value);
  }
  void end() const {
    if (!left_.empty()) refuse();
  }

private:
  [[noreturn]] static void refuse() { throw Failure("template", "The template's file is damaged."); }
  std::string_view take(uint64_t length) {
    if (length > left_.size()) refuse();
    std::string_view taken = left_.substr(0, length);
    left_.remove_prefix(length);
    return taken;
  }
  std::string_view left_;
};

} // namespace

std::string encode(const Image &image) {
  Writer writer;
  writer.plain(image.hello);
  writer.plain(image.pid);
  writer.plain(image.loaded);
  writer.plain(image.worker);
  writer.plain(image.sequences);
  writer.plain(image.sequences_length);
  writer.plain(image.robust_list);
  writer.plain(image.layout);
  writer.text(image.auxiliary);
  writer.text(image.name);
  writer.plain(image.signal_stack);
  writer.all(image.handlers);
  writer.texts(image.environment);
  writer.texts(image.arguments);
  writer.texts(image.places);
  writer.plain(static_cast<uint64_t>(image.pieces.size()));
  for (const Piece &piece : image.pieces) {
    writer.plain(piece.start);
    writer.plain(piece.end);
    writer.plain(piece.kind);
    writer.plain(piece.protection);
    writer.plain(piece.offset);
    writer.text(piece.path);
    writer.plain(piece.size);
    writer.plain(piece.changed_ns);
  }
  writer.all(image.runs);
  return writer.bytes;
}

Image decode(std::string_view bytes) {
  Reader reader(bytes);
  Image image;
  reader.plain(image.hello);
  reader.plain(image.pid);
  reader.plain(image.loaded);
  reader.plain(image.worker);
  reader.plain(image.sequences);
  reader.plain(image.sequences_length);
  reader.plain(image.robust_list);
  reader.plain(image.layout);
  image.auxiliary = reader.text();
  image.name = reader.text();
  reader.plain(image.signal_stack);
  reader.all(image.handlers);
  reader.texts(image.environment);
  reader.texts(image.arguments);
  reader.texts(image.places);
  image.pieces.resize(reader.count());
  for (Piece &piece : image.pieces) {
    reader.plain(piece.start);
    reader.plain(piece.end);
    reader.plain(piece.kind);
    reader.plain(piece.protection);
    reader.plain(piece.offset);
    piece.path = reader.text();
    reader.plain(piece.size);
    reader.plain(piece.changed_ns);
  }
  reader.all(image.runs);
  reader.end();
  return image;
}

std::string identity_at(const void *address) {
  std::ifstream file("/proc/self/maps");
  std::stringstream text;
  text << file.rdbuf();
  for (const Mapping &mapping : parse_maps(text.str()))
    if (mapping.start == reinterpret_cast<uint64_t>(address)) return mapping.file;
  throw Failure("system", "A mapping of the proxy is not in its list.");
}

Template::Template(const std::string &path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status;
  if (!file_ || fstat(file_.get(), &status) < 0) throw_errno("open the template");
  bytes_ = static_cast<uint64_t>(status.st_size);
  uint64_t length = 0;
  if (bytes_ < sizeof length) throw Failure("template", "The template's file is empty.");
  void *mapped = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) throw_errno("map the template");
  mapped_ = static_cast<std::byte *>(mapped);
  std::memcpy(&length, mapped_, sizeof length);
  if (length > bytes_ - sizeof length) throw Failure("template", "The template's file is damaged.");
  image_ = decode({reinterpret_cast<const char *>(mapped_) + sizeof length, length});
  for (const Pages &run : image_.runs)
    if (run.start >= run.end || run.offset > bytes_ || run.end - run.start > bytes_ - run.offset)
      throw Failure("template", "The template's file is damaged.");
  identity_ = identity_at(mapped_);
}

Template::~Template() {
  if (mapped_) munmap(mapped_, bytes_);
}

std::vector<Pages> Template::reveal(std::vector<Mapping> &mappings, uint64_t heap_end) const {
  std::vector<Pages> pages;
  for (Mapping &mapping : mappings) {
    if (mapping.file != identity_) continue;
    mapping.name.clear(); // It is another one when the file is removed.
    if (mapping.shared) continue;
    pages.push_back({{mapping.start, mapping.end}, mapping.offset});
    mapping.file.clear();
    mapping.offset = 0;
    bool heap = mapping.start < heap_end && mapping.end > image_.layout.start_brk; // As the kernel names it.
    if (heap) mapping.name = "[heap]";
  }
  return pages;
}

} // namespace gpuwhisk::inject
