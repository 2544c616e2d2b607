package gpuwhisk;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;

/** The variables that System.getenv shows, which Java cannot set: hence --add-opens java.base/java.util. */
final class Environment {
    private final Map<String, String> variables;
    private final Map<String, String> seen = new HashMap<>();

    @SuppressWarnings("unchecked")
    Environment() throws ReflectiveOperationException {
        Map<String, String> shown = System.getenv();
        Field behind = shown.getClass().getDeclaredField("m");
        behind.setAccessible(true);
        variables = (Map<String, String>) behind.get(shown);
    }

    /** Takes a variable that is not meant for actions; null if there is none. */
    synchronized String take(String name) {
        return variables.remove(name);
    }

    /** What a restore puts back: a copy of the variables as they are. */
    synchronized Map<String, String> copy() {
        return Map.copyOf(variables);
    }

    synchronized void restore(Map<String, String> saved) {
        seen.clear();
        if (variables.equals(saved)) return;
        variables.clear();
        variables.putAll(saved);
    }

    /** Sets every pair of an init's `env`. */
    synchronized void add(JsonObject pairs) {
        for (Map.Entry<String, JsonElement> pair : pairs.entrySet()) {
            variables.put(pair.getKey(), pair.getValue().getAsString());
        }
    }

    /** Sets `__OW_` and the name in capitals for every string of a run but its value. */
    synchronized void addRun(JsonObject message) {
        for (Map.Entry<String, JsonElement> field : message.entrySet()) {
            if (field.getKey().equals("value") || !field.getValue().isJsonPrimitive()) continue;
            String text = field.getValue().getAsString();
            if (!text.equals(seen.put(field.getKey(), text))) {
                variables.put("__OW_" + field.getKey().toUpperCase(java.util.Locale.ROOT), text);
            }
        }
    }
}
