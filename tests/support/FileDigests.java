import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeMap;
import java.util.zip.CRC32;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Reads log files with Kafka's own classes and prints the digests of digests.py, a line for each file and codec: the
 * file, the codec, and the numbers, with tabs between. Checksums of batches are checked. Arguments: the files.
 */
public final class FileDigests {
    private static final int NUMBERS = 13;
    private static final HexFormat HEX = HexFormat.of().withUpperCase();

    public static void main(String[] arguments) throws Exception {
        for (String name : arguments) {
            TreeMap<String, long[]> byCodec = new TreeMap<>();
            try (FileRecords records = FileRecords.open(new File(name), false)) {
                for (RecordBatch batch : records.batches()) {
                    batch.ensureValid();
                    long[] sums = byCodec.computeIfAbsent(batch.compressionType().name, codec -> new long[NUMBERS]);
                    for (Record record : batch) {
                        add(sums, batch, record);
                    }
                }
            }
            byCodec.forEach((codec, sums) -> print(name, codec, sums));
        }
    }

    private static void add(long[] sums, RecordBatch batch, Record record) {
        long offset = record.offset();
        sums[0]++;
        sums[1] += batch.isControlBatch() ? 1 : 0;
        sums[2] += batch.isTransactional() ? 1 : 0;
        sums[3] += offset;
        sums[4] += record.timestamp() % 86_400_000;
        sums[5] += batch.producerId();
        sums[6] += record.hasKey() ? 0 : 1;
        sums[7] += record.hasValue() ? 0 : 1;
        sums[8] += Math.max(record.keySize(), 0);
        sums[9] += Math.max(record.valueSize(), 0);
        sums[10] += record.hasKey() ? crc(record.key()) * (offset % 61 + 1) : 0;
        sums[11] += record.hasValue() ? crc(record.value()) * (offset % 59 + 1) : 0;
        sums[12] += crc(ByteBuffer.wrap(text(record.headers()).getBytes(StandardCharsets.UTF_8)));
    }

    private static String text(Header[] headers) {
        List<String> parts = new ArrayList<>();
        for (Header header : headers) {
            parts.add(header.key() + "=" + (header.value() == null ? "null" : HEX.formatHex(header.value())));
        }
        return String.join(",", parts);
    }

    private static long crc(ByteBuffer data) {
        CRC32 crc = new CRC32();
        crc.update(data);
        return crc.getValue();
    }

    private static void print(String name, String codec, long[] sums) {
        StringBuilder line = new StringBuilder(name).append('\t').append(codec);
        for (long sum : sums) {
            line.append('\t').append(sum);
        }
        System.out.println(line);
    }
}
