import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** Remote storage for a broker that is only recorded: segments stay in its memory. Nobody asks for their indexes. */
public final class HeldInMemory implements RemoteStorageManager {
    private final Map<RemoteLogSegmentId, byte[]> segments = new ConcurrentHashMap<>();

    @Override
    public void configure(Map<String, ?> settings) {
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata metadata, LogSegmentData data)
            throws RemoteStorageException {
        try {
            segments.put(metadata.remoteLogSegmentId(), Files.readAllBytes(data.logSegment()));
        } catch (IOException e) {
            throw new RemoteStorageException(e);
        }
        return Optional.of(new CustomMetadata(new byte[] {'i', 'n', ' ', 'm', 'e', 'm', 'o', 'r', 'y'}));
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start) {
        return fetchLogSegment(metadata, start, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start, int end) {
        byte[] segment = segments.get(metadata.remoteLogSegmentId());
        return new ByteArrayInputStream(Arrays.copyOfRange(segment, start, Math.min(end, segment.length)));
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) {
        return InputStream.nullInputStream();
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata metadata) {
        segments.remove(metadata.remoteLogSegmentId());
    }

    @Override
    public void close() {
        segments.clear();
    }
}
