package gpuwhisk;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonPrimitive;
import java.lang.reflect.Method;
import java.util.concurrent.Callable;

/** Several requests of an action as one run: a text stands for a request whose result is none. */
final class Batch {
    private static final String NO_RESULT = "The action did not return a dictionary or array.";

    private Batch() {}

    /** Calls one request's code, and keeps what it does to itself. */
    interface Containment {
        JsonElement run(Callable<JsonElement> work) throws Exception;
    }

    /** By the action's method for batches, which gets all at once; else one after the other, each failing on its own. */
    static JsonArray run(Action action, JsonArray requests, Containment contained) throws Exception {
        Method together = action.batchMethod();
        JsonArray entries = new JsonArray();
        if (together == null) {
            for (JsonElement request : requests) entries.add(alone(action, request, contained));
            return entries;
        }
        int size = requests.size();
        if (!(contained.run(() -> action.call(together, requests)) instanceof JsonArray results) || results.size() != size) {
            throw new IllegalStateException("The action was given " + size + " requests and returned no array of as many results.");
        }
        for (JsonElement result : results) {
            if (isResult(result) || isText(result)) entries.add(result);
            else entries.add(NO_RESULT);
        }
        return entries;
    }

    private static JsonElement alone(Action action, JsonElement request, Containment contained) {
        try {
            return contained.run(() -> action.run(request));
        } catch (Throwable failure) {
            return new JsonPrimitive(Action.describe(failure));
        }
    }

    private static boolean isResult(JsonElement entry) {
        return entry.isJsonObject() || entry.isJsonArray();
    }

    private static boolean isText(JsonElement entry) {
        return entry.isJsonPrimitive() && entry.getAsJsonPrimitive().isString();
    }
}
