package gpuwhisk;

import com.google.gson.JsonObject;

/** The action that a pre-warmer runs before it is ready, so that the first real one finds everything in use. */
public final class Sample {
    private Sample() {}

    public static JsonObject main(JsonObject argument) {
        JsonObject result = new JsonObject();
        result.add("argument", argument);
        result.addProperty("resource", Sample.class.getClassLoader().getResource("none.txt") == null);
        return result;
    }
}
