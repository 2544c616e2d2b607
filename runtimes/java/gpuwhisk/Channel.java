package gpuwhisk;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Frames over a connected socket: u32 length, u8 type, u32 id, all little-endian, then UTF-8 JSON. */
final class Channel {
    static final int HELLO = 1, INIT = 2, RUN = 3, RESULT = 4, ERROR = 5, LOG = 6, CANCEL = 7, BYE = 8, UNLOAD = 9,
            CHECK = 10, CODE = 14;
    static final int MAX_PAYLOAD_BYTES = 64 * 1024 * 1024;
    private static final int HEADER_BYTES = 9;

    record Frame(int type, int id, byte[] payload) {}

    private final DataInputStream in;
    private final OutputStream out;

    /** Takes over a descriptor, which Java has no name for: hence --add-opens java.base/java.io. */
    Channel(int descriptor) throws ReflectiveOperationException {
        Constructor<FileDescriptor> constructor = FileDescriptor.class.getDeclaredConstructor(int.class);
        constructor.setAccessible(true);
        FileDescriptor socket = constructor.newInstance(descriptor);
        in = new DataInputStream(new FileInputStream(socket));
        out = new FileOutputStream(socket);
    }

    /** The next frame; null once the peer is gone. Throws ProtocolException for a frame that is too long. */
    Frame read() throws IOException {
        byte[] header = new byte[HEADER_BYTES];
        try {
            in.readFully(header);
            ByteBuffer fields = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN);
            long length = Integer.toUnsignedLong(fields.getInt());
            int type = fields.get();
            int id = fields.getInt();
            if (length > MAX_PAYLOAD_BYTES) {
                throw new ProtocolException("a frame of " + length + " bytes is longer than " + MAX_PAYLOAD_BYTES);
            }
            byte[] payload = new byte[(int) length];
            in.readFully(payload);
            return new Frame(type, id, payload);
        } catch (EOFException end) {
            return null;
        }
    }

    /** A frame that answers nothing: hello or bye. */
    synchronized void announce(int type, String payload) throws IOException {
        out.write(frame(type, 0, payload.getBytes(StandardCharsets.UTF_8)));
    }

    /** An answer and its log frame, in one write. */
    synchronized void answer(int type, int id, byte[] payload) throws IOException {
        byte[] answer = frame(type, id, payload);
        byte[] log = frame(LOG, id, "{}".getBytes(StandardCharsets.UTF_8));
        out.write(ByteBuffer.allocate(answer.length + log.length).put(answer).put(log).array());
    }

    private static byte[] frame(int type, int id, byte[] payload) {
        ByteBuffer bytes = ByteBuffer.allocate(HEADER_BYTES + payload.length).order(ByteOrder.LITTLE_ENDIAN);
        return bytes.putInt(payload.length).put((byte) type).putInt(id).put(payload).array();
    }

    /** The peer sent what is not the protocol. */
    static final class ProtocolException extends IOException {
        private static final long serialVersionUID = 1L;

        ProtocolException(String message) {
            super(message);
        }
    }
}
