package gpuwhisk;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** System.out and System.err: fresh ones for every action, which it may close, keep or replace without harm to the next. */
final class Streams {
    // Only one per descriptor ever: a descriptor keeps all the streams that were made of it.
    private static final OutputStream stdout = new FileOutputStream(FileDescriptor.out);
    private static final OutputStream stderr = new FileOutputStream(FileDescriptor.err);
    private static PrintStream out;
    private static PrintStream err;

    private Streams() {}

    static void renew() {
        out = over(stdout);
        err = over(stderr);
        System.setOut(out);
        System.setErr(err);
    }

    private static PrintStream over(OutputStream descriptor) {
        OutputStream open = new FilterOutputStream(descriptor) {
            @Override
            public void write(byte[] bytes, int from, int length) throws IOException {
                out.write(bytes, from, length);
            }

            @Override
            public void close() {
                // The descriptor is for the next action, too.
            }
        };
        return new PrintStream(new BufferedOutputStream(open), true, StandardCharsets.UTF_8);
    }

    /** Writes out what was printed so far, also to streams that the action put in the place of ours. */
    static void flush() {
        for (PrintStream stream : new PrintStream[] {System.out, System.err}) {
            try {
                if (stream != null) stream.flush();
            } catch (Throwable unfit) {
                // A stream of the action's own: the run is answered whatever that throws.
            }
        }
        out.flush();
        err.flush();
    }

    /** Writes a line to the action's log, whatever has become of its System.err. */
    static void say(String line) {
        err.println(line);
    }

    /** Prints a trace where the action prints its errors; one that throws itself when it is printed, by its class alone. */
    static void trace(Throwable failure) {
        try {
            failure.printStackTrace(System.err == null ? err : System.err);
        } catch (Throwable ofItsOwn) {
            say(failure.getClass().getName());
        }
    }
}
