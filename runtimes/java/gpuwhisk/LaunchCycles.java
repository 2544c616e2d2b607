package gpuwhisk;

import java.util.Map;

/** Tells kernel tokens when a launch cycle begins and ends: a run, or a batch. */
class LaunchCycles {
    /** Reports nothing. */
    static final LaunchCycles NONE = new LaunchCycles();
    private static final String LIBRARY = "/libgpuwhisk-tokens.so";

    private LaunchCycles() {}

    void begin(int batch) {}

    void end() {}

    /** Those of the library of native/tokens where it is loaded before this program, else NONE. */
    static LaunchCycles of(Map<String, String> environment) {
        if (!environment.containsKey("GPUWHISK_TOKENS_SOCKET")) return NONE;
        for (String library : environment.getOrDefault("LD_PRELOAD", "").split("[: ]")) {
            if (!library.endsWith(LIBRARY)) continue;
            try {
                System.load(library);
                return new Marked();
            } catch (UnsatisfiedLinkError unfit) {
                System.err.println("Launch cycles are not marked: " + unfit.getMessage());
            }
        }
        return NONE;
    }

    /** Of the library, in native/tokens/runtimes.c. */
    private static final class Marked extends LaunchCycles {
        @Override
        native void begin(int batch);

        @Override
        native void end();
    }
}
