package gpuwhisk;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Holds one action at a time, and in a pre-warmer one after the other. */
final class Host {
    private static final long ENDING_MS = 1000;
    private static final int COLLECTIONS = 20;
    /** Unloads after which the collector must have shown that nothing is left of the actions before. */
    private static final int MOST_UNPROVED = 256;

    private final Environment environment = new Environment();
    private final Path folder;
    private final boolean concurrent;
    private final List<WeakReference<ClassLoader>> unloaded = new ArrayList<>();
    private Baseline baseline;
    private Remains remains;
    private Folders folders;
    private boolean spent;
    private String namespace;
    private ThreadPoolExecutor runs;
    private volatile Action action;

    /** Code is put into `folder`, which is emptied whenever an action is unloaded. */
    Host(Path folder, boolean concurrent) throws ReflectiveOperationException {
        this.folder = folder;
        this.concurrent = concurrent;
        Streams.renew();
        renewRuns();
    }

    /** From now on actions can be unloaded: notes what the JVM is like. Throws IOException for a folder with files in it. */
    void keepBaseline() throws IOException, ReflectiveOperationException {
        folders = new Folders(folder, environment.take("GPUWHISK_SCRATCH"));
        baseline = new Baseline();
        Settings.addTo(baseline, environment);
        runs.shutdownNow();
        remains = new Remains();
        renewRuns();
    }

    /** Whether the platform asked for it; once only. */
    boolean isPrewarmer() {
        return "true".equals(environment.take("GPUWHISK_PREWARM"));
    }

    boolean canUnload() {
        return baseline != null;
    }

    /** An unload left something behind: from now on no action comes here. */
    void spend() {
        spent = true;
    }

    boolean isSpent() {
        return spent;
    }

    private void renewRuns() {
        // Runs leave the reading thread free to notice that the invoker is gone.
        int threads = concurrent ? Integer.MAX_VALUE : 1;
        BlockingQueue<Runnable> waiting = concurrent ? new SynchronousQueue<>() : new LinkedBlockingQueue<>();
        runs = new ThreadPoolExecutor(1, threads, 60, TimeUnit.SECONDS, waiting);
        runs.prestartAllCoreThreads();
    }

    void execute(Runnable work) {
        runs.execute(work);
    }

    boolean isLoaded() {
        return action != null;
    }

    /** Why this JVM does not take the code of `message`; null if it does. */
    String refusal(JsonObject message) {
        if (spent) return "System not ready: an action left behind what cannot be put back.";
        String owner = namespaceOf(message);
        if (namespace == null || namespace.equals(owner)) return null;
        return "This runtime has run code of another namespace.";
    }

    /** The warm-up's actions are nobody's. */
    void forgetNamespace() {
        namespace = null;
    }

    private static String namespaceOf(JsonObject message) {
        JsonElement env = message.get("env");
        JsonElement name = env == null ? null : env.getAsJsonObject().get("__OW_NAMESPACE");
        return name == null ? "" : name.getAsString();
    }

    /** Loads the JAR of an init, without running any of it. Throws what keeps it from being loaded. */
    void load(JsonObject message) throws Exception {
        namespace = namespaceOf(message);
        byte[] jar = Base64.getDecoder().decode(message.get("code").getAsString().trim());
        if (message.has("digest")) verify(jar, message.get("digest").getAsString());
        if (message.has("env")) environment.add(message.getAsJsonObject("env"));
        String main = message.get("main").getAsString();
        action = new Action(jar, folder.resolve("action.jar"), main);
    }

    private static void verify(byte[] code, String digest) throws NoSuchAlgorithmException {
        String found = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(code));
        if (!found.equalsIgnoreCase(digest)) {
            throw new SecurityException("the code's SHA-256 is " + found + " instead of " + digest);
        }
    }

    JsonElement run(JsonObject message) throws Exception {
        environment.addRun(message);
        JsonElement value = message.has("value") ? message.get("value") : new JsonObject();
        return contain(() -> action.run(value));
    }

    /** Where runs overlap, one that exits ends the process with all of them. */
    private <T> T contain(java.util.concurrent.Callable<T> work) throws Exception {
        return concurrent ? work.call() : Exit.contain(work);
    }

    /** Ends what the action left running and puts back what it changed. Returns what does not end. */
    List<String> unload() throws IOException, InterruptedException {
        runs.shutdownNow();
        if (!runs.awaitTermination(ENDING_MS, TimeUnit.MILLISECONDS)) return List.of("a run");
        List<String> left = new ArrayList<>(remains.endThreads());
        if (!left.isEmpty()) return left;
        if (action != null) {
            action.close();
            unloaded.add(new WeakReference<>(action.loader()));
            action = null;
        }
        folders.empty();
        Streams.renew();
        baseline.restore();
        renewRuns();
        return left;
    }

    /**
     * What is not as it was before the action: nothing, or the JVM is of no more use. `thorough` proves with the collector
     * that nothing refers to the action; else that is left to every 256th time.
     */
    List<String> verify(boolean thorough) throws InterruptedException {
        List<String> left = new ArrayList<>(baseline.differences());
        // The JVM itself opens a file now and then, for a moment.
        boolean unclear = !remains.descriptorDifferences().isEmpty() && !remains.descriptorDifferences().isEmpty();
        if (thorough || unclear || unloaded.size() >= MOST_UNPROVED) left.addAll(leftAfterCollection());
        return left;
    }

    /** What the collector cannot get rid of: actions that were unloaded but are referred to, descriptors in use. */
    private List<String> leftAfterCollection() throws InterruptedException {
        List<String> left = List.of();
        for (int turn = 0; turn < COLLECTIONS; turn++) {
            System.gc();
            unloaded.removeIf(loader -> loader.refersTo(null));
            left = new ArrayList<>(remains.descriptorDifferences());
            if (!unloaded.isEmpty()) left.add("objects of an action that is gone");
            if (left.isEmpty()) return left;
            Thread.sleep(1); // Descriptors of streams that nobody refers to are closed by another thread.
        }
        return left;
    }
}
