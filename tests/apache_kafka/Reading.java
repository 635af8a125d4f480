import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a group that tells what it owns and reads, and commits it, until it is told to end. Arguments are bootstrap
 * servers, a group, and "remove", which removes all members, or a protocol and a topic.
 */
public final class Reading {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        if (arguments[2].equals("remove")) {
            try (Admin admin = Admin.create(settings)) {
                admin.removeMembersFromConsumerGroup(arguments[1], new RemoveMembersFromConsumerGroupOptions()).all().get();
            }
            return;
        }
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, arguments[1]);
        settings.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, arguments[2]);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        if (arguments[2].equals("classic")) {
            settings.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 300);
        }

        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        boolean[] ending = {false};
        Thread reader = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ending[0] = true;
            try {
                reader.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(List.of(arguments[3]));
        Set<Integer> owned = new TreeSet<>();
        while (!ending[0]) {
            var records = consumer.poll(Duration.ofMillis(100));
            Set<Integer> now = new TreeSet<>();
            for (TopicPartition partition : consumer.assignment()) {
                now.add(partition.partition());
            }
            if (!now.equals(owned)) {
                owned = now;
                System.out.println("owns " + owned);
            }
            for (ConsumerRecord<String, String> record : records) {
                System.out.println("read " + record.value());
            }
            try {
                consumer.commitSync();
            } catch (CommitFailedException | RebalanceInProgressException e) {
                System.out.println("refused");
            }
        }
        consumer.close();
        System.out.println("left");
    }
}
