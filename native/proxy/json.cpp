#include "json.h"

#include <cstdint>
#include <cstdio>

namespace gpuwhisk::proxy {
namespace {

constexpr int max_depth = 512;

/** Reads over JSON values (RFC 8259); every function says whether what it read is valid. */
class Reader {
public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool value(int depth = 0) {
    skip_blanks();
    if (depth > max_depth || at_ == text_.size()) return false;
    switch (text_[at_]) {
    case '{':
      return list('}', depth, true);
    case '[':
      return list(']', depth, false);
    case '"':
      return string();
    default:
      return word("true") || word("false") || word("null") || number();
    }
  }

  bool string() {
    if (!take('"')) return false;
    while (at_ < text_.size()) {
      auto next = static_cast<unsigned char>(text_[at_++]);
      if (next == '"') return true;
      if (next < 0x20) return false;
      if (next == '\\' && !escape()) return false;
    }
    return false;
  }

  bool take(char wanted) {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    at_++;
    return true;
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) at_++;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  size_t at() const { return at_; }

private:
  bool list(char close, int depth, bool named) {
    at_++;
    skip_blanks();
    if (take(close)) return true;
    for (;;) {
      skip_blanks();
      if (named) {
        if (!string()) return false;
        skip_blanks();
        if (!take(':')) return false;
      }
      if (!value(depth + 1)) return false;
      skip_blanks();
      if (take(close)) return true;
      if (!take(',')) return false;
    }
  }

  bool escape() {
    if (at_ == text_.size()) return false;
    char kind = text_[at_++];
    if (kind != 'u') return std::string_view("\"\\/bfnrt").find(kind) != std::string_view::npos;
    for (int i = 0; i < 4; i++, at_++)
      if (at_ == text_.size() || !isxdigit(static_cast<unsigned char>(text_[at_]))) return false;
    return true;
  }

  bool word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  bool digits() {
    size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') at_++;
    return at_ > first;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

void append_utf8(std::string &text, uint32_t point) {
  if (point < 0x80) text += static_cast<char>(point);
  else if (point < 0x800) (text += static_cast<char>(0xC0 | point >> 6)) += static_cast<char>(0x80 | (point & 0x3F));
  else if (point < 0x10000)
    ((text += static_cast<char>(0xE0 | point >> 12)) += static_cast<char>(0x80 | (point >> 6 & 0x3F))) +=
        static_cast<char>(0x80 | (point & 0x3F));
  else
    (((text += static_cast<char>(0xF0 | point >> 18)) += static_cast<char>(0x80 | (point >> 12 & 0x3F))) +=
     static_cast<char>(0x80 | (point >> 6 & 0x3F))) += static_cast<char>(0x80 | (point & 0x3F));
}

uint32_t hexadecimal(std::string_view json, size_t at) {
  return static_cast<uint32_t>(std::stoul(std::string(json.substr(at, 4)), nullptr, 16));
}

// The length of the UTF-8 sequence at the start of `text`; 0 if there is none.
size_t sequence_length(std::string_view text) {
  auto first = static_cast<unsigned char>(text[0]);
  size_t length = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3
                                   : first >= 0xF0 && first < 0xF5 ? 4 : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; i++)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  return length;
}

} // namespace

std::optional<std::map<std::string, std::string_view>> fields_of(std::string_view object) {
  Reader reader(object);
  std::map<std::string, std::string_view> fields;
  reader.skip_blanks();
  if (!reader.take('{')) return std::nullopt;
  reader.skip_blanks();
  if (reader.take('}')) return reader.at_end() ? std::optional(fields) : std::nullopt;
  for (;;) {
    reader.skip_blanks();
    size_t start = reader.at();
    if (!reader.string()) return std::nullopt;
    std::optional<std::string> name = text_of(object.substr(start, reader.at() - start));
    reader.skip_blanks();
    if (!name || !reader.take(':')) return std::nullopt;
    reader.skip_blanks();
    start = reader.at();
    if (!reader.value()) return std::nullopt;
    fields[*name] = object.substr(start, reader.at() - start);
    reader.skip_blanks();
    if (reader.take('}')) return reader.at_end() ? std::optional(fields) : std::nullopt;
    if (!reader.take(',')) return std::nullopt;
  }
}

std::optional<std::vector<std::string_view>> elements_of(std::string_view array) {
  Reader reader(array);
  std::vector<std::string_view> elements;
  reader.skip_blanks();
  if (!reader.take('[')) return std::nullopt;
  reader.skip_blanks();
  if (reader.take(']')) return reader.at_end() ? std::optional(elements) : std::nullopt;
  for (;;) {
    reader.skip_blanks();
    size_t start = reader.at();
    if (!reader.value()) return std::nullopt;
    elements.push_back(array.substr(start, reader.at() - start));
    reader.skip_blanks();
    if (reader.take(']')) return reader.at_end() ? std::optional(elements) : std::nullopt;
    if (!reader.take(',')) return std::nullopt;
  }
}

std::optional<std::string> text_of(std::string_view json) {
  Reader reader(json);
  if (!reader.string() || reader.at() != json.size()) return std::nullopt;
  std::string text;
  for (size_t i = 1; i + 1 < json.size(); i++) {
    if (json[i] != '\\') {
      text += json[i];
      continue;
    }
    char kind = json[++i];
    size_t plain = std::string_view("bfnrt").find(kind);
    if (plain != std::string_view::npos) text += "\b\f\n\r\t"[plain];
    if (plain != std::string_view::npos || kind != 'u') {
      if (plain == std::string_view::npos) text += kind;
      continue;
    }
    uint32_t point = hexadecimal(json, i + 1);
    i += 4;
    bool pair = point >= 0xD800 && point < 0xDC00 && json.substr(i + 1, 2) == "\\u";
    uint32_t low = pair ? hexadecimal(json, i + 3) : 0;
    if (pair && low >= 0xDC00 && low < 0xE000) {
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
      i += 6;
    }
    append_utf8(text, point >= 0xD800 && point < 0xE000 ? 0xFFFD : point);
  }
  return text;
}

std::string quote(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    size_t length = sequence_length(text);
    auto first = static_cast<unsigned char>(text[0]);
    if (length == 0) json += "\\ufffd";
    else if (first == '"' || first == '\\') (json += '\\') += text[0];
    else if (first < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", first);
      json += escaped;
    } else json += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return json + '"';
}

bool is_object_or_array(std::string_view json) {
  Reader reader(json);
  reader.skip_blanks();
  bool opens = reader.at() < json.size() && (json[reader.at()] == '{' || json[reader.at()] == '[');
  return opens && reader.value() && reader.at_end();
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (char letter : text) {
    if (letter == '=' || letter == '\n' || letter == '\r') continue;
    size_t value = std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return bytes;
}

} // namespace gpuwhisk::proxy
