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
    private static final int MOST_THREADS = 4096;
    private static final long ENDING_NS = 500_000_000;
    /** Standard input, output and error and the channel. */
    private static final int STANDARD = 3;
    private static final File descriptorFolder = new File("/proc/self/fd");

    private final Set<Thread> ownThreads = new HashSet<>(Arrays.asList(liveThreads()));
    private final Map<String, String> ownDescriptors = descriptors();

    /** Interrupts the threads that are not ours and waits up to half a second for their end; returns those that live on. */
    List<String> endThreads() throws InterruptedException {
        List<Thread> strangers = strangers();
        for (Thread thread : strangers) thread.interrupt();
        long deadline = System.nanoTime() + ENDING_NS;
        for (Thread thread : strangers) {
            long leftMs = (deadline - System.nanoTime()) / 1_000_000;
            thread.join(Math.max(leftMs, 1));
        }
        // They may have started others before they ended.
        List<String> names = new ArrayList<>(strangers().stream().map(thread -> "thread '" + thread.getName() + "'").toList());
        if (hasChild()) names.add("a process");
        while (!isIdle(ForkJoinPool.commonPool()) && System.nanoTime() < deadline) Thread.sleep(1);
        if (!isIdle(ForkJoinPool.commonPool())) names.add("work in the common pool");
        return names;
    }

    private static boolean isIdle(ForkJoinPool pool) {
        return pool.isQuiescent() && !pool.hasQueuedSubmissions();
    }

    /** The JDK has a thread that waits for each child, and threads that wait for the next child. */
    private static boolean hasChild() {
        return Arrays.stream(liveThreads())
                .anyMatch(thread -> thread.getName().startsWith("process reaper") && thread.getState() == Thread.State.RUNNABLE);
    }

    private List<Thread> strangers() {
        return Arrays.stream(liveThreads())
                .filter(thread -> thread.isAlive() && !ownThreads.contains(thread) && !belongsToJdk(thread))
                .toList();
    }

    /** Threads that the JDK starts when it first needs them, and which run no code of an action while it is idle. */
    private static boolean belongsToJdk(Thread thread) {
        if (thread instanceof ForkJoinWorkerThread worker && worker.getPool() == ForkJoinPool.commonPool()) return true;
        return thread.getClass().getName().startsWith("jdk.internal.misc.");
    }

    private static Thread[] liveThreads() {
        ThreadGroup root = Thread.currentThread().getThreadGroup();
        while (root.getParent() != null) root = root.getParent();
        Thread[] all = new Thread[MOST_THREADS];
        return Arrays.copyOf(all, root.enumerate(all));
    }

    /** Descriptors that were closed or opened, and of the standard ones and the channel those that were replaced. */
    List<String> descriptorDifferences() {
        Set<String> open = Set.of(descriptorFolder.list());
        List<String> differences = new ArrayList<>();
        for (String number : open) {
            String own = ownDescriptors.get(number);
            // Looking at all of our own would take longer than all the rest.
            if (own != null && Integer.parseInt(number) > STANDARD) continue;
            String target = target(number);
            if (!target.equals(own) && !isGone(target)) differences.add("descriptor " + number + " (" + target + ")");
        }
        for (String number : ownDescriptors.keySet()) {
            if (!open.contains(number)) differences.add("descriptor " + number + " (closed)");
        }
        return differences;
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
