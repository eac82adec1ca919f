// What kafkajs does in the recording: node kafkajs.js HOST:PORT

const { Kafka, logLevel } = require("kafkajs");

const TOPIC = "kafkajs-orders";
const GROUP = "kafkajs-billing";
const VALUES = ["chair", "table", "lamp"];

async function main(bootstrap) {
  const kafka = new Kafka({ clientId: "shop-floor", brokers: [bootstrap], logLevel: logLevel.ERROR });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: 1, replicationFactor: 1 }] });

  const producer = kafka.producer({ idempotent: true, transactionalId: "kafkajs-till", maxInFlightRequests: 1 });
  await producer.connect();
  const transaction = await producer.transaction();
  await transaction.send({ topic: TOPIC, messages: VALUES.map((value) => ({ key: "k", value, headers: { n: "1" } })) });
  await transaction.commit();
  await producer.disconnect();

  const consumer = kafka.consumer({ groupId: GROUP, sessionTimeout: 10000 });
  await consumer.connect();
  await consumer.subscribe({ topics: [TOPIC], fromBeginning: true });
  await new Promise((resolve) => {
    let read = 0;
    consumer.run({ autoCommit: false, eachMessage: async () => { read += 1; if (read === VALUES.length) resolve(); } });
  });
  await consumer.commitOffsets([{ topic: TOPIC, partition: 0, offset: String(VALUES.length), metadata: "checked" }]);
  await admin.describeGroups([GROUP]);
  await admin.fetchOffsets({ groupId: GROUP });
  await admin.fetchTopicMetadata({ topics: [TOPIC] });
  await consumer.disconnect();
  await admin.listGroups();
  await admin.disconnect();
}

setTimeout(() => { throw new Error("not done after 60 s"); }, 60000).unref();
main(process.argv[2]).catch((error) => { console.error(error); process.exit(1); });
