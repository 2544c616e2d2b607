package gpuwhisk;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;

/** What is paid before a pre-warmer is ready: the first loads, runs and unloads, until the compiler has seen enough. */
final class WarmUp {
    private static final int ROUNDS = 300;

    private WarmUp() {}

    /** `archiving` only loads the classes; those that are to be archived are never collected. */
    static void run(Host host, Gson gson, boolean archiving) throws Exception {
        // Opens the descriptors that the JDK keeps for itself.
        new SecureRandom().nextInt();
        new java.net.Socket().close();
        java.nio.channels.FileChannel.open(java.nio.file.Path.of("/dev/null")).close();
        host.keepBaseline();
        byte[] jar = sampleJar();
        String code = Base64.getEncoder().encodeToString(jar);
        String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(jar));
        int rounds = archiving ? 1 : ROUNDS;
        for (int round = 0; round < rounds; round++) inject(host, gson, code, digest, false);
        if (!archiving) inject(host, gson, code, digest, true);
        host.forgetNamespace();
        if (!archiving) host.proveInBackground();
    }

    private static void inject(Host host, Gson gson, String code, String digest, boolean thorough)
            throws Exception {
        JsonObject message = new JsonObject();
        message.addProperty("main", "gpuwhisk.Simple");
        message.addProperty("code", code);
        message.addProperty("digest", digest);
        host.load(JsonParser.parseString(gson.toJson(message)).getAsJsonObject());
        FutureTask<String> sample = new FutureTask<>(() -> gson.toJson(host.run(argument())));
        host.execute(sample);
        sample.get();
        List<String> left = host.unload(thorough).left();
        if (!left.isEmpty()) throw new IllegalStateException("The sample left behind: " + String.join(", ", left));
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
