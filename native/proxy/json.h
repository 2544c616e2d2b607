// The little JSON that the proxy needs: fields of an object, and whether a text is an object or an array.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhisk::proxy {

/** The fields of a JSON object, each as its own JSON text; nothing if the text is no valid object. */
std::optional<std::map<std::string, std::string_view>> fields_of(std::string_view object);

/** The entries of a JSON array, each as its own JSON text; nothing if the text is no valid array. */
std::optional<std::vector<std::string_view>> elements_of(std::string_view array);

/** What a JSON string says; nothing if the text is something else. */
std::optional<std::string> text_of(std::string_view json);

/** A JSON string that says `text`; bytes that are no UTF-8 become U+FFFD. */
std::string quote(std::string_view text);

/** Whether the text is one whole JSON object or array. */
bool is_object_or_array(std::string_view json);

/** The bytes that base64 text stands for; nothing if it is not base64. */
std::optional<std::string> decode_base64(std::string_view text);

} // namespace gpuwhisk::proxy
