package gpuwhisk;

import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

/**
 * The code of an init, taken out of its JSON: the parser, which has seen no long text before a JVM's first JAR, would be the
 * longest part of the load (bench `real`, `jackson`). `text` is empty, and `rest` the JSON as it is, where there is no code, or one with escapes.
 * `jar`: the JAR itself, where it came in frames of its own; null otherwise.
 */
record InitCode(byte[] text, byte[] rest, byte[] jar) {
    private static final byte[] NAME = "code".getBytes(StandardCharsets.US_ASCII);

    static InitCode in(byte[] json) {
        int start = start(json);
        int end = start < 0 ? -1 : end(json, start);
        if (end < 0 || end >= json.length || json[end] != '"') return new InitCode(new byte[0], json, null);
        byte[] rest = new byte[json.length - (end - start)];
        System.arraycopy(json, 0, rest, 0, start);
        System.arraycopy(json, end, rest, start, json.length - end);
        return new InitCode(Arrays.copyOfRange(json, start, end), rest, null);
    }

    /** The code that came in frames behind an init: a JAR, or what should have been its base64. */
    static InitCode of(byte[] code, boolean isBinary) {
        return isBinary ? new InitCode(new byte[0], new byte[0], code) : new InitCode(code, new byte[0], null);
    }

    boolean isEmpty(JsonObject message) {
        return jar == null && text.length == 0 && (!message.has("code") || message.get("code").getAsString().isEmpty());
    }

    /** The JAR. Throws IllegalArgumentException for what is not base64. */
    byte[] jar(JsonObject message) {
        if (jar != null) return jar;
        if (text.length == 0) return decoded(message.get("code").getAsString().getBytes(StandardCharsets.ISO_8859_1));
        return decoded(text);
    }

    private static byte[] decoded(byte[] text) {
        int from = 0, to = text.length;
        while (from < to && text[from] <= ' ') from++;
        while (to > from && text[to - 1] <= ' ') to--;
        return Base64.getDecoder().decode(from == 0 && to == text.length ? text : Arrays.copyOfRange(text, from, to));
    }

    /** Where the text of the outermost object's `code` starts; -1 if it has none. */
    private static int start(byte[] json) {
        int depth = 0;
        for (int at = 0; at < json.length; at++) {
            switch (json[at]) {
                case '{', '[' -> depth++;
                case '}', ']' -> depth--;
                case '"' -> {
                    int begin = at + 1;
                    for (at = begin; at < json.length && json[at] != '"'; at++) if (json[at] == '\\') at++;
                    boolean isCode = depth == 1 && at < json.length && Arrays.equals(json, begin, at, NAME, 0, NAME.length);
                    if (isCode && at + 2 < json.length && json[at + 1] == ':' && json[at + 2] == '"') return at + 3;
                }
                default -> { }
            }
        }
        return -1;
    }

    /** Where a text ends, or its first escape is. */
    private static int end(byte[] json, int start) {
        int at = start;
        while (at < json.length && json[at] != '"' && json[at] != '\\') at++;
        return at;
    }
}
