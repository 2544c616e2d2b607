package gpuwhisk;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;

/** What is paid before a pre-warmer is ready: the first loads, runs and unloads, until the compiler has seen enough. */
final class WarmUp {
    static final int ROUNDS = 300;

    private WarmUp() {}

    /** `rounds` are few where only classes are to be loaded; those loads keep the collector from proving anything. */
    static void run(Host host, Gson gson, int rounds) throws Exception {
        // Opens the descriptors that the JDK keeps for itself.
        new SecureRandom().nextInt();
        java.security.MessageDigest.getInstance("SHA-256");
        new java.net.Socket().close();
        java.nio.channels.FileChannel.open(java.nio.file.Path.of("/dev/null")).close();
        host.keepBaseline();
        String code = Base64.getEncoder().encodeToString(sampleJar());
        for (int round = 0; round < rounds; round++) {
            JsonObject message = new JsonObject();
            message.addProperty("main", "gpuwhisk.Simple");
            message.addProperty("code", code);
            host.load(JsonParser.parseString(gson.toJson(message)).getAsJsonObject());
            FutureTask<String> sample = new FutureTask<>(() -> gson.toJson(host.run(argument())));
            host.execute(sample);
            sample.get();
            host.unload();
            List<String> left = host.verify(round == ROUNDS - 1);
            if (!left.isEmpty()) throw new IllegalStateException("The sample left behind: " + String.join(", ", left));
        }
        host.forgetNamespace();
    }

    private static JsonObject argument() {
        return JsonParser.parseString("{\"value\":{\"a\":[1,null]},\"b\":\"c\"}").getAsJsonObject();
    }

    /** A JAR with the sample under a name that this class path does not have. */
    private static byte[] sampleJar() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (JarOutputStream jar = new JarOutputStream(bytes);
                InputStream in = Sample.class.getResourceAsStream("Sample.class")) {
            String classFile = new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
            jar.putNextEntry(new JarEntry("gpuwhisk/Simple.class"));
            // Names of the same length, so that the class file stays one.
            jar.write(classFile.replace("gpuwhisk/Sample", "gpuwhisk/Simple").getBytes(StandardCharsets.ISO_8859_1));
        }
        return bytes.toByteArray();
    }
}
