package gpuwhisk;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * Rewrites a class file so that System.exit, Runtime.exit and Runtime.halt become calls of Exit. There is no other way
 * to catch them since security managers are gone (JEP 486). A call by reflection is not seen: it ends the process.
 */
final class ExitCalls {
    private static final int UTF8 = 1, CLASS = 7, METHOD = 10, NAME_AND_TYPE = 12, METHOD_HANDLE = 15;
    private static final int INVOKE_VIRTUAL = 0xb6, INVOKE_STATIC = 0xb8;
    private static final int HANDLE_VIRTUAL = 5, HANDLE_STATIC = 6;
    private static final int MOST_CONSTANTS = 65535, ADDED_CONSTANTS = 5;

    private ByteBuffer file;
    private final int[] constants;
    private final Set<Integer> virtualCalls = new HashSet<>();
    private int poolEnd;
    /** Whether the word `exit` or `halt` is among the constants. */
    private boolean isNamed;

    private ExitCalls(byte[] classFile) {
        file = ByteBuffer.wrap(classFile);
        constants = new int[file.getShort(8) & 0xffff];
        readPool();
    }

    /** The class file, changed where it calls exit; as it is where it does not, or is no class file. */
    static byte[] redirect(byte[] classFile) {
        try {
            return new ExitCalls(classFile).redirected(classFile);
        } catch (IndexOutOfBoundsException | IllegalArgumentException malformed) {
            return classFile; // The JVM says what is wrong with it.
        }
    }

    private void readPool() {
        int at = 10;
        for (int index = 1; index < constants.length; index++) {
            constants[index] = at;
            int tag = file.get(at);
            if (tag == UTF8) isNamed |= isWord(at);
            if (tag == 5 || tag == 6) index++; // long and double take two places.
            at += switch (tag) {
                case UTF8 -> 3 + u2(at + 1);
                case 3, 4, 9, METHOD, 11, NAME_AND_TYPE, 17, 18 -> 5;
                case 5, 6 -> 9;
                case CLASS, 8, 16, 19, 20 -> 3;
                case METHOD_HANDLE -> 4;
                default -> throw new IllegalArgumentException();
            };
        }
        poolEnd = at;
    }

    private boolean isWord(int at) {
        if (u2(at + 1) != 4) return false;
        int letters = file.getInt(at + 3);
        return letters == 0x65786974 || letters == 0x68616c74;
    }

    private byte[] redirected(byte[] unchanged) {
        if (!isNamed) return unchanged;
        file = ByteBuffer.wrap(unchanged.clone());
        if (constants.length + ADDED_CONSTANTS > MOST_CONSTANTS) return unchanged;
        boolean found = false;
        for (int index = 1; index < constants.length; index++) {
            int at = constants[index];
            if (at == 0 || file.get(at) != METHOD) continue;
            String method = text(u2(at + 1), 1) + "." + text(u2(at + 3), 1) + text(u2(at + 3), 3);
            boolean isVirtual = method.equals("java/lang/Runtime.exit(I)V") || method.equals("java/lang/Runtime.halt(I)V");
            if (!isVirtual && !method.equals("java/lang/System.exit(I)V")) continue;
            found = true;
            file.putShort(at + 1, (short) (constants.length + 1));
            if (!isVirtual) continue;
            file.putShort(at + 3, (short) (constants.length + 4));
            virtualCalls.add(index);
        }
        if (!found) return unchanged;
        if (!virtualCalls.isEmpty()) makeCallsStatic();
        return withMoreConstants();
    }

    /** The text that a constant refers to, `offset` bytes into it. */
    private String text(int index, int offset) {
        int at = constants[u2(constants[index] + offset)];
        return new String(file.array(), at + 3, u2(at + 1), StandardCharsets.UTF_8);
    }

    private byte[] withMoreConstants() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(file.capacity() + 100);
        int first = constants.length;
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.write(file.array(), 0, 8);
            out.writeShort(first + ADDED_CONSTANTS);
            out.write(file.array(), 10, poolEnd - 10);
            writeText(out, "gpuwhisk/Exit");
            out.writeByte(CLASS);
            out.writeShort(first);
            writeText(out, "exit");
            writeText(out, "(Ljava/lang/Runtime;I)V");
            out.writeByte(NAME_AND_TYPE);
            out.writeShort(first + 2);
            out.writeShort(first + 3);
            out.write(file.array(), poolEnd, file.capacity() - poolEnd);
        } catch (IOException never) {
            throw new IllegalStateException(never); // Nothing is written outside the memory.
        }
        return bytes.toByteArray();
    }

    private static void writeText(DataOutputStream out, String text) throws IOException {
        out.writeByte(UTF8);
        out.writeUTF(text);
    }

    /** Calls on an object take it from the stack as a static method takes its first parameter. */
    private void makeCallsStatic() {
        for (int at : constants) {
            if (at == 0 || file.get(at) != METHOD_HANDLE || !virtualCalls.contains(u2(at + 2))) continue;
            if (file.get(at + 1) == HANDLE_VIRTUAL) file.put(at + 1, (byte) HANDLE_STATIC);
        }
        int at = poolEnd + 8 + 2 * u2(poolEnd + 6);
        at = eachMember(at, false);
        eachMember(at, true);
    }

    /** Walks the fields or the methods at `at`; returns where they end. */
    private int eachMember(int at, boolean methods) {
        int members = u2(at);
        at += 2;
        for (int member = 0; member < members; member++) {
            int attributes = u2(at + 6);
            at += 8;
            for (int attribute = 0; attribute < attributes; attribute++) {
                if (methods && isCode(at)) rewrite(at + 14, file.getInt(at + 10));
                at += 6 + file.getInt(at + 2);
            }
        }
        return at;
    }

    private boolean isCode(int attribute) {
        int at = constants[u2(attribute)];
        return u2(at + 1) == 4 && Arrays.equals(file.array(), at + 3, at + 7, "Code".getBytes(StandardCharsets.UTF_8), 0, 4);
    }

    private void rewrite(int start, int length) {
        for (int at = start; at < start + length; at += Instructions.length(file, start, at)) {
            if ((file.get(at) & 0xff) != INVOKE_VIRTUAL || !virtualCalls.contains(u2(at + 1))) continue;
            file.put(at, (byte) INVOKE_STATIC);
        }
    }

    private int u2(int at) {
        return file.getShort(at) & 0xffff;
    }
}
