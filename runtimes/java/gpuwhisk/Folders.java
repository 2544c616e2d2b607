package gpuwhisk;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The folders that an action can fill: what is in them now stays, what comes later is the action's. */
final class Folders {
    private final Map<Path, Set<Path>> own = new LinkedHashMap<>();

    /** `others` are paths with colons between them, or null. Throws IOException for a working folder with files in it. */
    Folders(Path working, String others) throws IOException {
        // Whose they are is not known, and an unload would remove them.
        if (!list(working).isEmpty()) throw new IOException("The working folder of a pre-warmer must be empty.");
        own.put(working, Set.of());
        if (others == null || others.isEmpty()) return;
        for (String name : others.split(":")) own.put(Path.of(name), new HashSet<>(list(Path.of(name))));
    }

    /** Whether there are others than the working folder: those of a container of its own. */
    boolean hasOthers() {
        return own.size() > 1;
    }

    /** Removes what the action left, links themselves and not what they point at. */
    void empty() throws IOException {
        for (Map.Entry<Path, Set<Path>> folder : own.entrySet()) {
            for (Path entry : list(folder.getKey())) if (!folder.getValue().contains(entry)) remove(entry);
        }
    }

    private static void remove(Path entry) throws IOException {
        if (Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
            try {
                for (Path each : list(entry)) remove(each);
            } catch (AccessDeniedException closed) {
                // Its owner is who runs this: the action took its own rights away.
                Files.setPosixFilePermissions(entry, PosixFilePermissions.fromString("rwx------"));
                for (Path each : list(entry)) remove(each);
            }
        }
        Files.delete(entry);
    }

    private static List<Path> list(Path folder) throws IOException {
        List<Path> entries = new ArrayList<>();
        try (DirectoryStream<Path> open = Files.newDirectoryStream(folder)) {
            for (Path entry : open) entries.add(entry);
        }
        return entries;
    }
}
