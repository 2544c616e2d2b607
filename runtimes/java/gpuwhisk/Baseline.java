package gpuwhisk;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** What is JVM-wide and what an action may change: as it was when this was made, and the way back there. */
final class Baseline {
    /** Something that can be put back; `isBack` looks whether it is, without changing anything. */
    private record Part(String name, Runnable restore, BooleanSupplier isBack) {}

    private final List<Part> parts = new ArrayList<>();

    void add(String name, Runnable restore, BooleanSupplier isBack) {
        parts.add(new Part(name, restore, isBack));
    }

    /** A value that is set back to what it is now. */
    <T> void add(String name, Supplier<T> get, Consumer<T> set) {
        T saved = get.get();
        add(name, () -> set.accept(saved), () -> Objects.equals(get.get(), saved));
    }

    /**
     * Puts back what differs, and returns what is not as it was even so. While nothing of the action runs, the look that
     * finds no difference is the proof. What an action's own object throws from here is not caught.
     */
    List<String> restore() {
        boolean restored = false;
        for (Part part : parts) {
            if (part.isBack.getAsBoolean()) continue;
            part.restore.run();
            restored = true;
        }
        return restored ? differences() : List.of();
    }

    private List<String> differences() {
        List<String> names = new ArrayList<>();
        for (Part part : parts) if (!part.isBack.getAsBoolean()) names.add(part.name);
        return names;
    }
}
