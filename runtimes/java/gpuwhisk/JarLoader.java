package gpuwhisk;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.security.ProtectionDomain;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.zip.ZipFile;

/** The classes and resources of one JAR, whose calls of exit go to Exit. Forgotten as a whole once it is closed. */
final class JarLoader extends ClassLoader implements Closeable {
    static {
        registerAsParallelCapable();
    }

    /** Packages of these are asked of the parent first; all others that the JAR has are its own. */
    private static final String[] shared = {"java.", "javax.", "jdk.", "sun.", "com.google.gson.", "gpuwhisk."};

    private final JarFile jar;
    private final String location;
    private final ProtectionDomain domain;

    /** Throws IOException, also for a file that is no JAR. */
    JarLoader(JarPlace place, ClassLoader parent) throws IOException {
        super(parent);
        jar = new JarFile(place.file(), false, ZipFile.OPEN_READ, JarFile.runtimeVersion());
        location = place.prefix();
        domain = new ProtectionDomain(place.source(), null, this, null);
    }

    /** The parent would be asked for each class of the JAR without success, which takes longer than all the rest. */
    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        for (String prefix : shared) if (name.startsWith(prefix)) return super.loadClass(name, resolve);
        synchronized (getClassLoadingLock(name)) {
            Class<?> found = findLoadedClass(name);
            if (found != null) return found;
            JarEntry entry = jar.getJarEntry(name.replace('.', '/') + ".class");
            return entry == null ? super.loadClass(name, resolve) : define(name, entry);
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        JarEntry entry = jar.getJarEntry(name.replace('.', '/') + ".class");
        if (entry == null) throw new ClassNotFoundException(name);
        return define(name, entry);
    }

    private Class<?> define(String name, JarEntry entry) throws ClassNotFoundException {
        try (InputStream in = jar.getInputStream(entry)) {
            byte[] classFile = ExitCalls.redirect(in.readAllBytes());
            definePackageOf(name);
            return defineClass(name, classFile, 0, classFile.length, domain);
        } catch (IOException unreadable) {
            throw new ClassNotFoundException(name, unreadable);
        }
    }

    private void definePackageOf(String className) throws IOException {
        int dot = className.lastIndexOf('.');
        if (dot < 0) return;
        String name = className.substring(0, dot);
        if (getDefinedPackage(name) != null) return;
        Manifest manifest = jar.getManifest();
        Attributes main = manifest == null ? new Attributes() : manifest.getMainAttributes();
        try {
            definePackage(
                    name,
                    main.getValue(Attributes.Name.SPECIFICATION_TITLE),
                    main.getValue(Attributes.Name.SPECIFICATION_VERSION),
                    main.getValue(Attributes.Name.SPECIFICATION_VENDOR),
                    main.getValue(Attributes.Name.IMPLEMENTATION_TITLE),
                    main.getValue(Attributes.Name.IMPLEMENTATION_VERSION),
                    main.getValue(Attributes.Name.IMPLEMENTATION_VENDOR),
                    null);
        } catch (IllegalArgumentException exists) {
            // Another thread may have been first.
            if (getDefinedPackage(name) == null) throw exists;
        }
    }

    @Override
    protected URL findResource(String name) {
        if (jar.getJarEntry(name) == null) return null;
        try {
            String path = new URI(null, null, "/" + name, null).getRawPath();
            return URI.create(location + path.substring(1)).toURL();
        } catch (URISyntaxException | MalformedURLException never) {
            throw new IllegalStateException(never);
        }
    }

    @Override
    protected Enumeration<URL> findResources(String name) {
        URL found = findResource(name);
        return Collections.enumeration(found == null ? List.of() : List.of(found));
    }

    @Override
    public void close() throws IOException {
        jar.close();
    }
}
