package gpuwhisk;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** Holds one action at a time, and in a pre-warmer one after the other. */
final class Host {
    private final Environment environment = new Environment();
    private final Path folder;
    private final JarPlace place;
    private final boolean concurrent;
    private final Runner runs;
    private LaunchCycles cycles = LaunchCycles.NONE;
    private Baseline baseline;
    private Remains remains;
    private Proof proof;
    private Folders folders;
    private boolean spent;
    private String namespace;
    private volatile Action action;

    /** Code is put into `folder`, which is emptied whenever an action is unloaded. */
    Host(Path folder, boolean concurrent) throws IOException, ReflectiveOperationException {
        this.folder = folder;
        place = JarPlace.in(folder);
        this.concurrent = concurrent;
        runs = new Runner(concurrent);
        Streams.renew();
    }

    /** From now on actions can be unloaded: notes what the JVM is like. Throws IOException for a folder with files in it. */
    void keepBaseline() throws IOException, InterruptedException, ReflectiveOperationException {
        folders = new Folders(folder, environment.take("GPUWHISK_SCRATCH"));
        baseline = new Baseline();
        Settings.addTo(baseline, environment);
        // Of the threads of runs only one that stays is noted: others would be kept for ever, with what they ran.
        runs.end();
        remains = new Remains(folders.hasOthers());
        runs.renew();
        proof = new Proof(remains);
    }

    /** From now on runs are marked as launch cycles; where they overlap, marks would say nothing. */
    void markCycles() {
        if (!concurrent) cycles = LaunchCycles.of(System.getenv());
    }

    /** From now on the proofs that are due are made in the background. */
    void proveInBackground() {
        proof.startMaking(this);
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

    /** Whether it takes actions, and no proof since the last unload has shown that one left something behind. */
    synchronized boolean isFit() {
        return !spent && !(proof != null && proof.hasFailed());
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

    /** The warm-up's actions belong to no namespace. */
    void forgetNamespace() {
        namespace = null;
    }

    private static String namespaceOf(JsonObject message) {
        JsonElement env = message.get("env");
        JsonElement name = env == null ? null : env.getAsJsonObject().get("__OW_NAMESPACE");
        return name == null ? "" : name.getAsString();
    }

    /** Loads the JAR of an init, without running any of it. Throws what keeps it from being loaded. */
    synchronized void load(JsonObject message, InitCode code) throws Exception {
        namespace = namespaceOf(message);
        byte[] jar = code.jar(message);
        if (message.has("digest")) verify(jar, message.get("digest").getAsString());
        if (message.has("env")) environment.add(message.getAsJsonObject("env"));
        String main = message.get("main").getAsString();
        action = new Action(jar, place, main);
    }

    private static void verify(byte[] code, String digest) throws NoSuchAlgorithmException {
        String found = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(code));
        if (!found.equalsIgnoreCase(digest)) {
            throw new SecurityException("the code's SHA-256 is " + found + " instead of " + digest);
        }
    }

    /** The result of a run, or the array of those of a batch; its launch cycle is marked. */
    JsonElement run(JsonObject message) throws Exception {
        boolean isBatch = message.remove("batch") != null;
        environment.addRun(message);
        JsonElement value = message.has("value") ? message.get("value") : new JsonObject();
        cycles.begin(isBatch ? value.getAsJsonArray().size() : 1);
        try {
            if (isBatch) return Batch.run(action, value.getAsJsonArray(), this::contain);
            return contain(() -> action.run(value));
        } finally {
            cycles.end();
        }
    }

    /** Where runs overlap, one that exits ends the process with all of them. */
    private <T> T contain(java.util.concurrent.Callable<T> work) throws Exception {
        return concurrent ? work.call() : Exit.contain(work);
    }

    /**
     * Ends what the action left running, puts back what it changed, and looks whether all is as it was. `thorough` proves
     * with the collector that nothing refers to the action; else that is left to a time without a waiting run, or to every
     * 512th unload.
     */
    synchronized Unloading unload(boolean thorough) throws Exception {
        if (!runs.end()) return Unloading.failed("a run");
        List<String> left = remains.endThreads();
        if (!left.isEmpty()) return new Unloading(left, 0);
        if (action != null) {
            action.close();
            proof.isGone(action.loader());
            action = null;
        }
        folders.empty();
        Streams.renew();
        environment.restore();
        runs.renew();
        // From here on nothing of the action runs.
        long startedNs = System.nanoTime();
        left = new ArrayList<>(baseline.restore());
        // The JVM itself opens a file now and then, for a moment.
        boolean unclear = !remains.descriptorDifferences().isEmpty() && !remains.descriptorDifferences().isEmpty();
        left.addAll(proof.take(this, thorough || unclear));
        return new Unloading(left, System.nanoTime() - startedNs);
    }

    /** What an unload left behind (nothing, or the JVM is of no more use), and how long it took to look. */
    record Unloading(List<String> left, long verifyNs) {
        static Unloading failed(String left) {
            return new Unloading(List.of(left), 0);
        }
    }
}
