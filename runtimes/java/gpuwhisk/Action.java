package gpuwhisk;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.Closeable;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;

/** The action of a JAR: a public static method from JsonObject to JsonObject, or from JsonArray to JsonArray. */
final class Action implements Closeable {
    private final JarLoader loader;
    private final Class<?> mainClass;
    private final String methodName;
    private final Method ofObject;

    /** Writes `jar` to its place. `main` is a class, or `class#method`; the method is `main` otherwise. */
    Action(byte[] jar, JarPlace place, String main) throws IOException, ReflectiveOperationException {
        try (FileOutputStream out = new FileOutputStream(place.file())) {
            out.write(jar);
        }
        String[] parts = main.split("#", 2);
        methodName = parts.length > 1 && !parts[1].isEmpty() ? parts[1] : "main";
        loader = new JarLoader(place, Action.class.getClassLoader());
        try {
            mainClass = Class.forName(parts[0], false, loader);
            ofObject = find(methodName, JsonObject.class);
            if (ofObject == null && find(methodName, JsonArray.class) == null) {
                throw new NoSuchMethodException(
                        parts[0] + "." + methodName + "(" + JsonObject.class.getName() + ")");
            }
        } catch (Throwable unfit) {
            loader.close();
            throw unfit;
        }
    }

    /** The loader of all its classes, which is gone when nothing of the action is left. */
    ClassLoader loader() {
        return loader;
    }

    @Override
    public void close() throws IOException {
        loader.close();
    }

    /** Calls the action's method; what it throws comes in an InvocationTargetException. */
    JsonElement run(JsonElement value) throws ReflectiveOperationException {
        Class<? extends JsonElement> type = value.isJsonArray() ? JsonArray.class : JsonObject.class;
        Method method = value.isJsonArray() ? find(methodName, type) : ofObject;
        if (method == null) {
            throw new NoSuchMethodException(mainClass.getName() + "." + methodName + "(" + type.getName() + ")");
        }
        return call(method, value);
    }

    /** The method that takes several requests at once, the action's with `Batch`; null if there is none. */
    Method batchMethod() {
        return find(methodName + "Batch", JsonArray.class);
    }

    /** Calls a method of the action; what it throws comes in an InvocationTargetException. */
    JsonElement call(Method method, JsonElement value) throws ReflectiveOperationException {
        Thread.currentThread().setContextClassLoader(loader);
        Object result = method.invoke(null, value);
        if (result == null) throw new NullPointerException("The action returned null");
        return (JsonElement) result;
    }

    private Method find(String name, Class<? extends JsonElement> type) {
        try {
            Method method = mainClass.getMethod(name, type);
            boolean fits = Modifier.isStatic(method.getModifiers())
                    && (method.getReturnType() == JsonObject.class || method.getReturnType() == JsonArray.class);
            // A public method of a class that is not public.
            method.setAccessible(true);
            return fits ? method : null;
        } catch (NoSuchMethodException absent) {
            return null;
        }
    }

    /** What to say of a failed run, in OpenWhisk's words; the trace goes to stderr. */
    static String describe(Throwable failure) {
        if (failure instanceof Exit) {
            Streams.say(failure.getMessage());
            return "The action did not produce a valid response and exited unexpectedly.";
        }
        boolean isThrown = failure instanceof InvocationTargetException;
        Throwable cause = isThrown ? failure.getCause() : failure;
        Streams.trace(cause);
        return "An error has occurred" + (isThrown ? " while invoking the action" : "") + " (see logs for details): "
                + nameOf(cause);
    }

    /** What an exception says of itself; its class if it throws one at that. */
    private static String nameOf(Throwable failure) {
        try {
            return failure.toString();
        } catch (Throwable ofItsOwn) {
            return failure.getClass().getName();
        }
    }
}
