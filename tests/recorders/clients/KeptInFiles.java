import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Remote storage in a directory of this machine, for a broker that is recorded. Files are named as Kafka's own tests of
 * tiered storage name them: topic-partition-topicId/offset-segmentId.suffix.
 */
public final class KeptInFiles implements RemoteStorageManager {
    private static final Map<IndexType, String> SUFFIXES = Map.of(
        IndexType.OFFSET, ".index",
        IndexType.TIMESTAMP, ".timeindex",
        IndexType.PRODUCER_SNAPSHOT, ".snapshot",
        IndexType.TRANSACTION, ".txnindex",
        IndexType.LEADER_EPOCH, ".leader_epoch_checkpoint");

    private Path home;

    @Override
    public void configure(Map<String, ?> settings) {
        home = Path.of(settings.get("dir").toString());
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata metadata, LogSegmentData data)
            throws RemoteStorageException {
        try {
            Files.createDirectories(file(metadata, "").getParent());
            Files.copy(data.logSegment(), file(metadata, ".log"));
            Files.copy(data.offsetIndex(), file(metadata, ".index"));
            Files.copy(data.timeIndex(), file(metadata, ".timeindex"));
            Files.copy(data.producerSnapshotIndex(), file(metadata, ".snapshot"));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), file(metadata, ".txnindex"));
            }
            ByteBuffer epochs = data.leaderEpochIndex();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.duplicate().get(bytes);
            Files.write(file(metadata, ".leader_epoch_checkpoint"), bytes);
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start) throws RemoteStorageException {
        return opened(metadata, ".log", start);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start, int end)
            throws RemoteStorageException {
        return opened(metadata, ".log", start);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) throws RemoteStorageException {
        return opened(metadata, SUFFIXES.get(type), 0);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata metadata) throws RemoteStorageException {
        List<String> suffixes = new ArrayList<>(SUFFIXES.values());
        suffixes.add(".log");
        try {
            for (String suffix : suffixes) {
                Files.deleteIfExists(file(metadata, suffix));
            }
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
    }

    @Override
    public void close() {
    }

    private InputStream opened(RemoteLogSegmentMetadata metadata, String suffix, int start)
            throws RemoteStorageException {
        Path file = file(metadata, suffix);
        if (!Files.exists(file)) {
            throw new RemoteResourceNotFoundException(file.toString());
        }
        try {
            InputStream found = Files.newInputStream(file);
            found.skipNBytes(start);
            return found;
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private Path file(RemoteLogSegmentMetadata metadata, String suffix) {
        var partition = metadata.remoteLogSegmentId().topicIdPartition();
        String directory = partition.topic() + "-" + partition.partition() + "-" + partition.topicId();
        String name = String.format("%020d-%s%s", metadata.startOffset(), metadata.remoteLogSegmentId().id(), suffix);
        return home.resolve(directory).resolve(name);
    }
}
