package gpuwhisk;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;

/** What an action leaves behind outside of Java's settings: threads, processes, descriptors. */
final class Remains {
    private static final long ENDING_NS = 500_000_000;
    /** Standard input, output and error and the channel. */
    private static final int STANDARD = 3;
    private static final File descriptorFolder = new File("/proc/self/fd");

    /** Those of the parent, where the container is ours: processes that outlive an action's become its children. */
    private final Path siblings;
    private final String ownSiblings;
    private final Set<Thread> ownThreads = new HashSet<>(Arrays.asList(liveThreads()));
    private final Map<String, String> ownDescriptors = descriptors();
    private final String[] ownNumbers = descriptorFolder.list();

    /** `ownContainer`: whether no other process belongs to the container. */
    Remains(boolean ownContainer) {
        String parent = ProcessHandle.current().parent().map(process -> Long.toString(process.pid())).orElse("none");
        siblings = ownContainer ? Path.of("/proc", parent, "task", parent, "children") : null;
        ownSiblings = siblings();
    }

    /** Empty where the kernel does not list them, or the parent is hidden. */
    private String siblings() {
        try {
            return siblings == null ? "" : Files.readString(siblings);
        } catch (IOException hidden) {
            return "";
        }
    }

    /** One more thread that is not an action's. */
    void own(Thread thread) {
        ownThreads.add(thread);
    }

    /** Interrupts the threads that are not ours and waits up to half a second for their end; returns those that live on. */
    List<String> endThreads() throws InterruptedException {
        List<String> names = new ArrayList<>();
        List<Thread> strangers = strangers();
        long deadline = System.nanoTime() + ENDING_NS;
        for (Thread thread : strangers) thread.interrupt();
        while (!strangers.isEmpty() && System.nanoTime() < deadline) {
            Thread.sleep(1);
            strangers = strangers();
        }
        for (Thread thread : strangers) names.add(name(thread));
        if (!siblings().equals(ownSiblings)) names.add("a process");
        ForkJoinPool common = ForkJoinPool.commonPool();
        while (!isIdle(common) && System.nanoTime() < deadline) Thread.sleep(1);
        if (!isIdle(common)) names.add("work in the common pool");
        return names;
    }

    private static String name(Thread thread) {
        return isReaper(thread) ? "a process" : "thread '" + thread.getName() + "'";
    }

    private static boolean isIdle(ForkJoinPool pool) {
        return pool.isQuiescent() && !pool.hasQueuedSubmissions();
    }

    /** The threads that wait for an action's processes count as remains, too, as long as these live. */
    private List<Thread> strangers() {
        Thread[] live = liveThreads();
        List<Thread> strangers = new ArrayList<>();
        for (Thread thread : live) {
            if (ownThreads.contains(thread) || belongsToJdk(thread) || !thread.isAlive()) continue;
            strangers.add(thread);
        }
        return strangers;
    }

    /** Threads that the JDK starts when it first needs them, and which run no code of an action while it is idle. */
    private static boolean belongsToJdk(Thread thread) {
        if (thread instanceof ForkJoinWorkerThread worker && worker.getPool() == ForkJoinPool.commonPool()) return true;
        if (isReaper(thread)) return thread.getState() != Thread.State.RUNNABLE;
        return thread.getClass().getName().startsWith("jdk.internal.misc.");
    }

    /** The JDK has a thread that waits for each child, and threads that wait for the next child. */
    private static boolean isReaper(Thread thread) {
        return thread.getName().startsWith("process reaper");
    }

    private static Thread[] liveThreads() {
        ThreadGroup root = Thread.currentThread().getThreadGroup();
        while (root.getParent() != null) root = root.getParent();
        for (int room = 64; ; room *= 2) {
            Thread[] all = new Thread[room];
            int count = root.enumerate(all);
            if (count < room) return Arrays.copyOf(all, count);
        }
    }

    /** Descriptors that were closed or opened, and of the standard ones and the channel those that were replaced. */
    List<String> descriptorDifferences() {
        String[] numbers = descriptorFolder.list();
        // Looking at what all of our own refer to would take longer than all the rest.
        if (Arrays.equals(numbers, ownNumbers) && areStandard()) return List.of();
        Set<String> open = Set.of(numbers);
        List<String> differences = new ArrayList<>();
        for (String number : open) {
            String own = ownDescriptors.get(number);
            if (own != null && Integer.parseInt(number) > STANDARD) continue;
            String target = target(number);
            if (!target.equals(own) && !isGone(target)) differences.add("descriptor " + number + " (" + target + ")");
        }
        for (String number : ownDescriptors.keySet()) {
            if (!open.contains(number)) differences.add("descriptor " + number + " (closed)");
        }
        return differences;
    }

    /** Whether the standard ones and the channel refer to what they did. */
    private boolean areStandard() {
        for (int number = 0; number <= STANDARD; number++) {
            String name = Integer.toString(number);
            if (!target(name).equals(ownDescriptors.get(name))) return false;
        }
        return true;
    }

    /** The open descriptors and what they refer to. */
    private static Map<String, String> descriptors() {
        Map<String, String> targets = new HashMap<>();
        for (String number : descriptorFolder.list()) {
            String target = target(number);
            if (!isGone(target)) targets.put(number, target);
        }
        return targets;
    }

    private static String target(String number) {
        try {
            return Files.readSymbolicLink(descriptorFolder.toPath().resolve(number)).toString();
        } catch (IOException closed) {
            return "";
        }
    }

    /** The descriptor that listed the folder is in the list itself. */
    private static boolean isGone(String target) {
        return target.isEmpty() || target.endsWith("/fd");
    }
}
