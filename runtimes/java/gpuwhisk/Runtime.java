package gpuwhisk;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The Java runtime: speaks the framed protocol on file descriptor 3 and runs one action. */
public final class Runtime {
    private static final int DESCRIPTOR = 3;
    private static final int PROTOCOL_VIOLATION = 70;

    // As JsonElement.toString writes: nulls kept, no HTML escapes.
    private final Gson gson = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private final Environment environment = new Environment();
    private final ExecutorService runs;
    private final Channel channel;
    private volatile Action action;

    private Runtime(Channel channel) throws ReflectiveOperationException {
        this.channel = channel;
        // Runs leave the reading thread free to notice that the invoker is gone.
        boolean concurrent = "true".equalsIgnoreCase(System.getenv("__OW_ALLOW_CONCURRENT"));
        runs = concurrent ? Executors.newCachedThreadPool() : Executors.newSingleThreadExecutor();
    }

    /** Without an argument it serves; with `--warm` it only loads what a first run needs, to be archived at its end. */
    public static void main(String[] words) throws Exception {
        if (words.length > 0 && words[0].equals("--warm")) {
            warm();
            return;
        }
        new Runtime(new Channel(DESCRIPTOR)).serve();
    }

    private static void warm() throws ReflectiveOperationException, IOException {
        Runtime runtime = new Runtime(new Channel(1));
        JsonObject message = JsonParser.parseString("{\"a\":[1,{\"b\":null}],\"c\":\"d\"}").getAsJsonObject();
        runtime.environment.addRun(message);
        runtime.gson.toJson(message);
        runtime.runs.submit(() -> Action.class.getName());
        runtime.runs.shutdown();
    }

    private void serve() throws IOException {
        channel.hello("{\"version\":1,\"kind\":\"java:" + java.lang.Runtime.version().feature() + "\"}");
        try {
            for (Channel.Frame frame = channel.read(); frame != null; frame = channel.read()) {
                switch (frame.type()) {
                    case Channel.INIT, Channel.RUN -> start(frame);
                    case Channel.CANCEL -> { } // The run goes on; whoever cancelled it drops the answer.
                    case Channel.BYE -> end(0);
                    default -> throw new Channel.ProtocolException("a frame of type " + frame.type());
                }
            }
        } catch (Channel.ProtocolException violation) {
            System.err.println("Protocol violation: " + violation.getMessage() + ".");
            end(PROTOCOL_VIOLATION);
        }
        end(0);
    }

    private static void end(int status) {
        System.out.flush();
        System.err.flush();
        // At once: threads and hooks of the action must not hold the container up.
        java.lang.Runtime.getRuntime().halt(status);
    }

    private void start(Channel.Frame frame) throws Channel.ProtocolException {
        JsonObject message;
        try {
            message = JsonParser.parseString(frame.text()).getAsJsonObject();
        } catch (JsonParseException | IllegalStateException malformed) {
            throw new Channel.ProtocolException(malformed.getMessage());
        }
        runs.execute(() -> {
            try {
                if (frame.type() == Channel.INIT) init(frame.id(), message);
                else run(frame.id(), message);
            } catch (IOException gone) {
                end(0);
            }
        });
    }

    private void init(int id, JsonObject message) throws IOException {
        if (action != null) {
            refuse(id, "Cannot initialize the action more than once.");
            return;
        }
        if (!has(message, "main") || !has(message, "code")) {
            refuse(id, "Missing main/no code to execute.");
            return;
        }
        if (message.has("env")) environment.add(message.getAsJsonObject("env"));
        try {
            action = new Action(message.get("code").getAsString(), message.get("main").getAsString());
            answer(Channel.RESULT, id, "{\"ok\":true}");
        } catch (Throwable failure) {
            refuse(id, Action.describe(failure));
        }
    }

    private static boolean has(JsonObject message, String field) {
        return message.has(field) && !message.get(field).getAsString().isEmpty();
    }

    private void run(int id, JsonObject message) throws IOException {
        if (action == null) {
            refuse(id, "Cannot invoke an uninitialized action.");
            return;
        }
        environment.addRun(message);
        try {
            JsonElement value = message.has("value") ? message.get("value") : new JsonObject();
            answer(Channel.RESULT, id, gson.toJson(action.run(value)));
        } catch (Throwable failure) {
            refuse(id, Action.describe(failure));
        }
    }

    private void refuse(int id, String error) throws IOException {
        JsonObject message = new JsonObject();
        message.addProperty("error", error);
        answer(Channel.ERROR, id, message.toString());
    }

    private void answer(int type, int id, String text) throws IOException {
        byte[] payload = text.getBytes(StandardCharsets.UTF_8);
        if (payload.length > Channel.MAX_PAYLOAD_BYTES) {
            refuse(id, "The action produced a response that is longer than " + Channel.MAX_PAYLOAD_BYTES + " bytes.");
            return;
        }
        System.out.flush();
        System.err.flush();
        channel.answer(type, id, payload);
    }
}
