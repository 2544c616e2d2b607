package gpuwhisk;

/**
 * What System.exit, Runtime.exit and Runtime.halt mean to an action: its code is made to call this class instead. On the
 * thread of a run they end the run; anywhere else they end the process.
 */
public final class Exit extends Error {
    private static final long serialVersionUID = 1L;
    private static final ThreadLocal<Exit[]> runs = new ThreadLocal<>();

    private Exit(int status) {
        super("the action called exit with status " + status);
    }

    /** In place of System.exit. */
    public static void exit(int status) {
        Exit[] run = runs.get();
        if (run == null) {
            Runtime.end(status);
        } else {
            run[0] = new Exit(status);
            throw run[0];
        }
    }

    /** In place of Runtime.exit and Runtime.halt. */
    public static void exit(java.lang.Runtime runtime, int status) {
        java.util.Objects.requireNonNull(runtime);
        exit(status);
    }

    /** Does `work` and returns what it returns; throws Exit where it exited, even if it caught that. */
    static <T> T contain(java.util.concurrent.Callable<T> work) throws Exception {
        Exit[] run = {null};
        runs.set(run);
        try {
            T result = work.call();
            if (run[0] != null) throw run[0];
            return result;
        } catch (Throwable failure) {
            if (run[0] != null) throw run[0];
            throw failure;
        } finally {
            runs.remove();
        }
    }
}
