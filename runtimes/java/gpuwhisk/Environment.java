package gpuwhisk;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;

/** The variables that System.getenv shows, which Java cannot set: hence --add-opens java.base/java.util and java.lang. */
final class Environment {
    private final Map<String, String> variables;
    /** What `variables` shows as text. */
    private final Map<?, ?> bytes;
    private final Map<String, String> seen = new HashMap<>();
    private Table kept;

    @SuppressWarnings("unchecked")
    Environment() throws ReflectiveOperationException {
        variables = (Map<String, String>) behind(System.getenv());
        bytes = behind(variables);
    }

    private static Map<?, ?> behind(Map<?, ?> shown) throws ReflectiveOperationException {
        Field field = shown.getClass().getDeclaredField("m");
        field.setAccessible(true);
        return (Map<?, ?>) field.get(shown);
    }

    /** Takes a variable that is not meant for actions; null if there is none. */
    synchronized String take(String name) {
        return variables.remove(name);
    }

    /** Notes the variables as they are now, which a restore puts back. */
    synchronized void keep() {
        kept = new Table(bytes);
    }

    synchronized boolean isBack() {
        return kept.isBack();
    }

    synchronized void restore() {
        seen.clear();
        if (!kept.isBack()) kept.restore();
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
