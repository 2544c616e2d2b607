package gpuwhisk;

import java.lang.reflect.Field;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** The threads of runs, which leave the reading thread free to notice that the invoker is gone. */
final class Runner {
    private static final long ENDING_NS = 1_000_000_000;
    private static final long WAIT_NS = 20_000;
    private static final String NAME = "run";

    private final boolean concurrent;
    private final Field locals;
    private final Field inheritableLocals;
    private ThreadPoolExecutor pool;
    /** The one thread where runs do not overlap. */
    private volatile Thread only;

    /** Throws ReflectiveOperationException where the JDK's threads keep their locals elsewhere (17 to 25 do not). */
    Runner(boolean concurrent) throws ReflectiveOperationException {
        this.concurrent = concurrent;
        locals = Thread.class.getDeclaredField("threadLocals");
        inheritableLocals = Thread.class.getDeclaredField("inheritableThreadLocals");
        locals.setAccessible(true);
        inheritableLocals.setAccessible(true);
        start();
    }

    private void start() {
        int threads = concurrent ? Integer.MAX_VALUE : 1;
        BlockingQueue<Runnable> waiting = concurrent ? new SynchronousQueue<>() : new LinkedBlockingQueue<>();
        pool = new ThreadPoolExecutor(1, threads, 60, TimeUnit.SECONDS, waiting, this::thread);
        pool.prestartAllCoreThreads();
    }

    private Thread thread(Runnable work) {
        Thread thread = new Thread(work, NAME);
        // One of many has no reference once it has ended: it has an action's class loader.
        if (!concurrent) only = thread;
        return thread;
    }

    void execute(Runnable work) {
        pool.execute(work);
    }

    /** Waits for the end of what runs; false if it does not end. Until `renew` nothing can be executed. */
    boolean end() throws InterruptedException {
        if (concurrent) {
            pool.shutdownNow();
            return pool.awaitTermination(ENDING_NS, TimeUnit.NANOSECONDS);
        }
        // The answer of a run leaves a moment before its thread is done.
        long deadline = System.nanoTime() + ENDING_NS;
        while (pool.getActiveCount() > 0) {
            if (System.nanoTime() > deadline) return false;
            LockSupport.parkNanos(WAIT_NS);
        }
        return true;
    }

    /** Fresh threads where there may be many; the one otherwise, without anything that a run can give to its thread. */
    void renew() throws IllegalAccessException {
        if (concurrent) start();
        else clean(only);
    }

    private void clean(Thread thread) throws IllegalAccessException {
        locals.set(thread, null);
        inheritableLocals.set(thread, null);
        thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
        thread.setUncaughtExceptionHandler(null);
        if (!thread.getName().equals(NAME)) thread.setName(NAME);
        if (thread.getPriority() != Thread.NORM_PRIORITY) thread.setPriority(Thread.NORM_PRIORITY);
    }
}
