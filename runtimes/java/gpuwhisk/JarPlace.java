package gpuwhisk;

import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.nio.file.Path;
import java.security.CodeSource;
import java.security.cert.Certificate;

/** Where every action's JAR lies: the file, the start of its resources' addresses, and what its classes say they come from. */
record JarPlace(File file, String prefix, CodeSource source) {
    static JarPlace in(Path folder) throws MalformedURLException {
        Path file = folder.resolve("action.jar");
        URL url = file.toUri().toURL();
        return new JarPlace(file.toFile(), "jar:" + url + "!/", new CodeSource(url, (Certificate[]) null));
    }
}
