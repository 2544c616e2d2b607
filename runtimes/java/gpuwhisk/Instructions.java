package gpuwhisk;

import java.nio.ByteBuffer;

/** Lengths of the JVM's instructions (Java Virtual Machine Specification, chapter 6). */
final class Instructions {
    private static final int TABLE_SWITCH = 170, LOOKUP_SWITCH = 171, WIDE = 196, INCREMENT = 132;

    private Instructions() {}

    /** Bytes of the instruction at `at` in code that begins at `start`. Throws IllegalArgumentException for none. */
    static int length(ByteBuffer code, int start, int at) {
        int operation = code.get(at) & 0xff;
        if (operation == TABLE_SWITCH || operation == LOOKUP_SWITCH) return switchLength(code, start, at, operation);
        if (operation == WIDE) return (code.get(at + 1) & 0xff) == INCREMENT ? 6 : 4;
        if (operation > 201) throw new IllegalArgumentException("instruction " + operation);
        if (operation == 185 || operation == 186 || operation >= 200) return 5;
        if (operation == 197) return 4;
        boolean one = operation < 16 || within(operation, 26, 53) || within(operation, 59, 131)
                || within(operation, 133, 152) || within(operation, 172, 177) || operation == 190 || operation == 191
                || operation == 194 || operation == 195;
        if (one) return 1;
        boolean two = operation == 16 || operation == 18 || within(operation, 21, 25) || within(operation, 54, 58)
                || operation == 169 || operation == 188;
        return two ? 2 : 3;
    }

    private static int switchLength(ByteBuffer code, int start, int at, int operation) {
        int operands = at + 4 - (at - start) % 4; // Aligned to four bytes from the start of the code.
        if (operation == LOOKUP_SWITCH) return operands + 8 + 8 * code.getInt(operands + 4) - at;
        int cases = code.getInt(operands + 8) - code.getInt(operands + 4) + 1;
        return operands + 12 + 4 * cases - at;
    }

    private static boolean within(int value, int least, int most) {
        return value >= least && value <= most;
    }
}
