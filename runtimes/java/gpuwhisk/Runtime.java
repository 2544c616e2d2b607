package gpuwhisk;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The Java runtime: speaks the framed protocol on file descriptor 3 and runs one action. */
public final class Runtime {
    private static final int DESCRIPTOR = 3;
    private static final int FAILED = 1;
    private static final int PROTOCOL_VIOLATION = 70;

    // As JsonElement.toString writes: nulls kept, no HTML escapes.
    private final Gson gson = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private final Channel channel;
    private final Host host;

    private Runtime(Channel channel, Path folder) throws IOException, ReflectiveOperationException {
        this.channel = channel;
        host = new Host(folder, "true".equalsIgnoreCase(System.getenv("__OW_ALLOW_CONCURRENT")));
    }

    /** Without an argument it serves; with `--warm` it only loads what a first run needs, to be archived at its end. */
    public static void main(String[] words) throws Exception {
        if (words.length > 0 && words[0].equals("--warm")) {
            Path folder = Files.createTempDirectory("gpuwhisk-java");
            Runtime runtime = new Runtime(new Channel(1), folder);
            WarmUp.run(runtime.host, runtime.gson, true);
            Files.delete(folder);
            System.exit(0); // Which writes the archive, as halt does not.
        }
        try {
            Runtime runtime = new Runtime(new Channel(DESCRIPTOR), Path.of("").toAbsolutePath());
            if (runtime.host.isPrewarmer()) WarmUp.run(runtime.host, runtime.gson, false);
            runtime.host.markCycles();
            runtime.serve();
        } catch (Throwable failure) {
            Streams.trace(failure);
            end(FAILED); // Other threads would keep a JVM that serves no caller.
        }
    }

    private void serve() throws IOException {
        String unload = host.canUnload() ? ",\"unload\":true" : "";
        String kind = "java:" + java.lang.Runtime.version().feature();
        Path pid = Files.readSymbolicLink(Path.of("/proc/self"));
        String hello = "{\"version\":1,\"kind\":\"" + kind + "\",\"pid\":" + pid + ",\"batch\":true,\"codeFrames\":true" + unload + "}";
        channel.announce(Channel.HELLO, hello);
        try {
            for (Channel.Frame frame = channel.read(); frame != null; frame = channel.read()) {
                switch (frame.type()) {
                    case Channel.INIT -> init(frame);
                    case Channel.CODE -> takeCode(frame);
                    case Channel.RUN -> start(frame);
                    case Channel.UNLOAD -> unload(frame);
                    case Channel.CHECK -> check(frame);
                    case Channel.CANCEL -> { } // The run goes on; the caller that cancelled it drops the answer.
                    case Channel.BYE -> end(0);
                    default -> throw new Channel.ProtocolException("a frame of type " + frame.type());
                }
            }
        } catch (Channel.ProtocolException violation) {
            Streams.say("Protocol violation: " + violation.getMessage() + ".");
            end(PROTOCOL_VIOLATION);
        }
        end(0);
    }

    /** Ends the process at once: threads and hooks of the action must not hold the container up. */
    static void end(int status) {
        Streams.flush();
        java.lang.Runtime.getRuntime().halt(status);
    }

    private static JsonObject parse(Channel.Frame frame) throws Channel.ProtocolException {
        return parse(frame.payload());
    }

    private static JsonObject parse(byte[] json) throws Channel.ProtocolException {
        try {
            return JsonParser.parseString(new String(json, StandardCharsets.UTF_8)).getAsJsonObject();
        } catch (JsonParseException | IllegalStateException malformed) {
            throw new Channel.ProtocolException(malformed.getMessage());
        }
    }

    private void start(Channel.Frame frame) throws Channel.ProtocolException {
        JsonObject message = parse(frame);
        execute(() -> run(frame.id(), message));
    }

    /** What a run's thread does; without an invoker to answer to, the process ends. */
    private interface Answering {
        void run() throws IOException;
    }

    private void execute(Answering work) {
        host.execute(() -> {
            try {
                work.run();
            } catch (IOException gone) {
                end(0);
            }
        });
    }

    /** Answered by the thread that would run the action. */
    private void check(Channel.Frame frame) throws IOException {
        parse(frame);
        if (!host.isFit()) {
            refuse(frame.id(), "An action left behind what cannot be put back.");
        } else {
            execute(() -> answer(Channel.RESULT, frame.id(), "{\"ok\":true}"));
        }
    }

    /** An init whose code comes in frames of its own: as base64 in JSON it would take the heap several times over. */
    private static final class Incoming {
        final int id;
        final JsonObject message;
        final byte[] code;
        int filled;

        Incoming(int id, JsonObject message) {
            this.id = id;
            this.message = message;
            code = new byte[message.get("codeBytes").getAsInt()];
        }
    }

    private Incoming incoming;

    private void takeCode(Channel.Frame frame) throws IOException {
        byte[] piece = frame.payload();
        Incoming to = incoming;
        if (to == null || to.id != frame.id() || piece.length > to.code.length - to.filled) {
            throw new Channel.ProtocolException("a piece of code that init " + frame.id() + " has not announced");
        }
        System.arraycopy(piece, 0, to.code, to.filled, piece.length);
        to.filled += piece.length;
        if (to.filled < to.code.length) return;
        incoming = null;
        boolean isBinary = to.message.has("binary") && to.message.get("binary").getAsBoolean();
        init(to.id, to.message, InitCode.of(to.code, isBinary));
    }

    private void init(Channel.Frame frame) throws IOException {
        InitCode code = InitCode.in(frame.payload());
        JsonObject message = parse(code.rest());
        if (message.has("codeBytes")) incoming = new Incoming(frame.id(), message);
        else init(frame.id(), message, code);
    }

    private void init(int id, JsonObject message, InitCode code) throws IOException {
        if (host.isLoaded()) {
            refuse(id, "Cannot initialize the action more than once.");
            return;
        }
        if (!has(message, "main") || code.isEmpty(message)) {
            refuse(id, "Missing main/no code to execute.");
            return;
        }
        String refusal = host.refusal(message);
        if (refusal != null) {
            refuse(id, refusal);
            return;
        }
        try {
            host.load(message, code);
            answer(Channel.RESULT, id, "{\"ok\":true}");
        } catch (Throwable failure) {
            refuse(id, Action.describe(failure));
        }
    }

    private static boolean has(JsonObject message, String field) {
        return message.has(field) && !message.get(field).getAsString().isEmpty();
    }

    private void run(int id, JsonObject message) throws IOException {
        if (!host.isLoaded()) {
            refuse(id, "Cannot invoke an uninitialized action.");
            return;
        }
        try {
            answer(Channel.RESULT, id, gson.toJson(host.run(message)));
        } catch (Throwable failure) {
            refuse(id, Action.describe(failure));
        }
    }

    private void unload(Channel.Frame frame) throws IOException {
        JsonObject message = parse(frame);
        if (!host.canUnload()) {
            refuse(frame.id(), "This runtime cannot unload.");
            return;
        }
        Host.Unloading done;
        try {
            done = host.unload(message.has("thorough") && message.get("thorough").getAsBoolean());
        } catch (Throwable failure) { // Also what objects of the action throw.
            done = Host.Unloading.failed(failure.toString());
        }
        if (done.left().isEmpty()) {
            answer(Channel.RESULT, frame.id(), "{\"ok\":true,\"verifyUs\":" + done.verifyNs() / 1000 + "}");
        } else {
            host.spend();
            refuse(frame.id(), "The action left behind: " + String.join(", ", done.left()) + ".");
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
        Streams.flush();
        channel.answer(type, id, payload);
    }
}
