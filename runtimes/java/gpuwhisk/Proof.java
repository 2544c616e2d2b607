package gpuwhisk;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/**
 * That nothing refers to the actions that are gone, and that no descriptor is left: shown by collections, which take
 * longer than all the rest. So they are made when no action has come for a while.
 */
final class Proof {
    private static final int COLLECTIONS = 20;
    /** Actions after which a proof is due although others come all the time. */
    private static final int MOST_UNPROVED = 512;
    private static final long IDLE_MS = 1000;

    private final Remains remains;
    private final List<WeakReference<ClassLoader>> unproved = new ArrayList<>();
    private long goneNs;
    private boolean waits;
    private List<String> found = List.of();

    Proof(Remains remains) {
        this.remains = remains;
    }

    /** Has proofs made while `host`, which all work is done under, does nothing else. */
    void startMaking(Host host) {
        Thread thread = new Thread(() -> makeWhenIdle(host), "proof");
        thread.setDaemon(true);
        remains.own(thread);
        thread.start();
    }

    void isGone(ClassLoader loader) {
        unproved.add(new WeakReference<>(loader));
        goneNs = System.nanoTime();
    }

    /** What the last proof found, or one that is made now if `thorough` or due. */
    List<String> take(Host host, boolean thorough) throws InterruptedException {
        if (thorough || unproved.size() >= MOST_UNPROVED) make();
        if (waits && !unproved.isEmpty()) host.notifyAll();
        return found;
    }

    boolean hasFailed() {
        return !found.isEmpty();
    }

    private void makeWhenIdle(Host host) {
        synchronized (host) {
            while (true) {
                try {
                    long idleMs = (System.nanoTime() - goneNs) / 1_000_000;
                    waits = unproved.isEmpty() || hasFailed();
                    if (waits) host.wait();
                    else if (idleMs < IDLE_MS) host.wait(IDLE_MS - idleMs);
                    else if (host.isLoaded()) host.wait(IDLE_MS);
                    else make();
                } catch (InterruptedException meddling) {
                    continue; // By an action that interrupts all threads that it finds.
                }
            }
        }
    }

    private void make() throws InterruptedException {
        for (int turn = 0; turn < COLLECTIONS; turn++) {
            System.gc();
            unproved.removeIf(loader -> loader.refersTo(null));
            found = new ArrayList<>(remains.descriptorDifferences());
            if (!unproved.isEmpty()) found.add("objects of an action that is gone");
            if (found.isEmpty()) return;
            Thread.sleep(1); // Descriptors of unreferenced streams are closed by another thread.
        }
    }
}
