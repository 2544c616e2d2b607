package gpuwhisk;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.spi.FileSystemProvider;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.text.NumberFormat;
import java.text.SimpleDateFormat;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.EnumMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.FutureTask;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

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
        loadCommonClasses();
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
        InitCode init = InitCode.in(gson.toJson(message).getBytes(StandardCharsets.UTF_8));
        host.load(JsonParser.parseString(new String(init.rest(), StandardCharsets.UTF_8)).getAsJsonObject(), init);
        FutureTask<String> sample = new FutureTask<>(() -> gson.toJson(host.run(argument())));
        host.execute(sample);
        sample.get();
        List<String> left = host.unload(thorough).left();
        if (!left.isEmpty()) throw new IllegalStateException("The sample left behind: " + String.join(", ", left));
    }

    private static JsonObject argument() {
        return JsonParser.parseString("{\"value\":{\"a\":[1,null]},\"b\":\"c\"}").getAsJsonObject();
    }

    /**
     * Has the JDK load what most libraries use first, such as Jackson: formats of dates and numbers, services, lambdas and
     * streams, generic signatures and annotations.
     */
    private static void loadCommonClasses() {
        new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSSX", Locale.US).format(new Date());
        NumberFormat.getInstance(Locale.US).format(1.5);
        String.format("%s %.2f", Instant.EPOCH, Double.parseDouble("1.5")).replaceAll("(.)-", "$1");
        ServiceLoader.load(FileSystemProvider.class).iterator().hasNext();
        IntStream.range(0, 3).mapToObj(number -> "n" + number).filter(name -> !name.isEmpty()).collect(Collectors.toList());
        new ConcurrentHashMap<String, Integer>().computeIfAbsent("a", String::length);
        new EnumMap<>(Map.of(Thread.State.NEW, new BigDecimal("1.5")));
        for (Class<?> type : List.of(ArrayList.class, Character.class)) {
            for (Method method : type.getMethods()) {
                method.getGenericReturnType();
                method.getGenericParameterTypes();
                method.getAnnotations();
            }
        }
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
