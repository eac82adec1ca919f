import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS on loopback until standard input ends. Arguments: a directory of its own, and local directories to copy into it. */
public final class Cluster {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[0]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings).numDataNodes(1).build();
        try {
            cluster.waitActive();
            FileSystem files = cluster.getFileSystem();
            files.mkdirs(new Path("/logs"));
            for (int at = 1; at < arguments.length; at++) {
                files.copyFromLocalFile(new Path(new File(arguments[at]).toURI()), new Path("/logs"));
            }
            System.out.println(cluster.getNameNodePort() + " " + cluster.getHttpUri(0).split(":")[2]);
            System.out.flush();
            while (System.in.read() >= 0) {
                // The tests that use the cluster are still running.
            }
        } finally {
            cluster.shutdown(true);
        }
    }
}
