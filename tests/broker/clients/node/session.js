// The session of tests/broker/clients/features.py, by kafkajs: node session.js kafkajs SERVERS SERVERS_WITH_LOGIN PREFIX
//
// A line of JSON for each feature has the facts that were found, or the error.

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, CompressionTypes, ConfigResourceTypes, Kafka,
  logLevel, ResourcePatternTypes } = require("kafkajs");

const PATIENCE = 120000;
const BATCH = 20;
const PARTITIONS = 4;
const START = 1700000000000;
const USER = "alice";
const PASSWORD = "alice-secret";

const [servers, login, prefix] = process.argv.slice(3);
const named = (suffix) => `${prefix}-${suffix}`;
const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.NOTHING });
const admin = kafka.admin();

async function until(what, condition) {
  const end = Date.now() + PATIENCE;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function produce(topic, messages, compression = CompressionTypes.None, options = {}) {
  const producer = kafka.producer(options);
  await producer.connect();
  await producer.send({ topic: named(topic), messages, compression, acks: -1 });
  await producer.disconnect();
}

// Reads in a group of its own, from the beginning, until there are so many messages.
async function read(topic, count, options = {}) {
  const consumer = kafka.consumer({ groupId: named(`reader-${Math.random()}`), maxWaitTimeInMs: 100, ...options });
  const found = [];
  await consumer.connect();
  await consumer.subscribe({ topics: [named(topic)], fromBeginning: true });
  await consumer.run({ eachMessage: async ({ message }) => { found.push(message); } });
  await until(`${count} messages come`, () => found.length >= count);
  await consumer.disconnect();
  return found;
}

async function records() {
  const numbers = [0, 1, 2];
  await produce("records", numbers.map((n) => ({
    key: `k${n}`, value: `v${n}`, headers: { h: `h${n}` }, timestamp: String(START + n),
  })));
  return (await read("records", numbers.length)).map((each) => ({
    offset: Number(each.offset), key: each.key.toString(), value: each.value.toString(),
    header: each.headers.h.toString(), timestamp: Number(each.timestamp),
  }));
}

const values = (count) => Array.from({ length: count }, () => ({ value: "the same value again and again" }));

const codec = (topic, compression, options) => async () => {
  await produce(topic, values(BATCH), compression, options);
  return (await read(topic, BATCH)).length;
};

// A member of the group reads from the moment it has joined. It knows what it owns, and has read of that.
async function join() {
  const consumer = kafka.consumer({
    groupId: named("group"), heartbeatInterval: 200, sessionTimeout: 10000, maxWaitTimeInMs: 100,
  });
  const each = { owned: [], read: new Map(), consumer };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    each.owned = payload.memberAssignment[named("group")] || [];
    each.read.clear();
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [named("group")], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => { each.read.set(`${partition} ${message.offset}`, message); },
  });
  return each;
}

async function commit(member) {
  const ends = {};
  for (const place of member.read.keys()) {
    const [partition, offset] = place.split(" ").map(Number);
    ends[partition] = Math.max(ends[partition] || 0, offset + 1);
  }
  await member.consumer.commitOffsets(Object.entries(ends).map(
    ([partition, offset]) => ({ topic: named("group"), partition: Number(partition), offset: String(offset) }),
  ));
}

async function fill(count) {
  const messages = [];
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    for (let n = 0; n < count; n += 1) messages.push({ value: `value-${n}`, partition });
  }
  await produce("group", messages);
}

async function group() {
  await fill(10);
  const first = await join();
  await until("one member has all", () => first.owned.length === PARTITIONS);
  const second = await join();
  await until("each has a half", () => first.owned.length === 2 && second.owned.length === 2);
  await second.consumer.disconnect();
  await until("the first has all again", () => first.owned.length === PARTITIONS);
  await until("everything is read", () => first.read.size >= 10 * PARTITIONS);
  await commit(first);
  await first.consumer.disconnect();
  await fill(2);
  const next = await join();
  await until("new messages are read", () => next.read.size >= 2 * PARTITIONS);
  await commit(next);
  await next.consumer.disconnect();
  const offsets = [...next.read.values()].map((each) => Number(each.offset));
  return { read: first.read.size, "resumed at": Math.min(...offsets), "read later": offsets.length };
}

async function transactional(id) {
  const producer = kafka.producer({ transactionalId: named(id), maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  return producer;
}

async function transactions() {
  const producer = await transactional("transactions");
  for (const end of ["commit", "abort", "commit"]) {
    const transaction = await producer.transaction();
    await transaction.send({ topic: named("transactions"), messages: Array(5).fill({ value: end }) });
    await transaction[end]();
  }
  await producer.disconnect();
  const committed = await read("transactions", 10);
  const everything = await read("transactions", 15, { readUncommitted: true });
  const aborted = committed.filter((each) => each.value.toString() === "abort").length;
  return { committed: committed.length, "aborted among them": aborted, all: everything.length };
}

async function committed() {
  const [topic] = await admin.fetchOffsets({ groupId: named("transactional-offsets"), topics: [named("source")] });
  return Number(topic.partitions[0].offset);
}

async function transactionalOffsets() {
  const producer = await transactional("pipe");
  const pipe = async (end) => {
    const transaction = await producer.transaction();
    await transaction.send({ topic: named("sink"), messages: values(10) });
    await transaction.sendOffsets({
      consumerGroupId: named("transactional-offsets"),
      topics: [{ topic: named("source"), partitions: [{ partition: 0, offset: "10" }] }],
    });
    await transaction[end]();
  };
  await pipe("abort");
  const found = { abort: await committed() };
  await pipe("commit");
  await until("the offset is known", async () => { found.commit = await committed(); return found.commit !== -1; });
  await producer.disconnect();
  return found;
}

async function times() {
  const [found] = await admin.fetchTopicOffsetsByTimestamp(named("records"), START + 1);
  return Number(found.offset);
}

async function count(topic) {
  try {
    return (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length;
  } catch (error) {
    if (error.type === "UNKNOWN_TOPIC_OR_PARTITION") return 0;
    throw error;
  }
}

async function retention(topic) {
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ["retention.ms"] }];
  const described = await admin.describeConfigs({ resources, includeSynonyms: false });
  return described.resources[0].configEntries[0].configValue;
}

async function topics() {
  const topic = named("admin");
  const configEntries = [{ name: "retention.ms", value: "3600000" }];
  const asked = { topics: [{ topic, numPartitions: 2, replicationFactor: 1, configEntries }] };
  await admin.createTopics(asked);
  // kafkajs says false, and nothing else, of a topic that there is.
  const again = (await admin.createTopics(asked)) === false;
  await until("the topic is known", async () => (await count(topic)) === 2);
  const found = { again, retention: await retention(topic) };
  const entries = [{ name: "retention.ms", value: "7200000" }];
  await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: entries }] });
  await until("the setting is known", async () => (await retention(topic)) === "7200000");
  await admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] });
  await until("there are more partitions", async () => (await count(topic)) === 4);
  await admin.deleteTopics({ topics: [topic] });
  await until("the topic is gone", async () => (await count(topic)) === 0);
  return found;
}

async function listed() {
  return (await admin.listGroups()).groups.some((each) => each.groupId === named("group"));
}

async function groups() {
  const was = await listed();
  const described = await admin.describeGroups([named("group")]);
  const [offsets] = await admin.fetchOffsets({ groupId: named("group"), topics: [named("group")] });
  const sum = offsets.partitions.reduce((total, each) => total + Number(each.offset), 0);
  await admin.deleteGroups([named("group")]);
  return { listed: was, state: described.groups[0].state, offsets: sum, deleted: !(await listed()) };
}


async function acls() {
  const rule = {
    resourceType: AclResourceTypes.TOPIC, resourceName: named("acl"), resourcePatternType: ResourcePatternTypes.PREFIXED,
    principal: `User:${prefix}`, host: "*", operation: AclOperationTypes.READ, permissionType: AclPermissionTypes.ALLOW,
  };
  const known = async () => (await admin.describeAcls(rule)).resources.flatMap((each) => each.acls).length;
  await admin.createAcls({ acl: [rule] });
  await until("the rule is known", async () => (await known()) === 1);
  const deleted = await admin.deleteAcls({ filters: [rule] });
  await until("the rule is gone", async () => (await known()) === 0);
  return deleted.filterResponses[0].matchingAcls.length;
}

async function logins() {
  const attempt = async (mechanism, password) => {
    const client = new Kafka({
      brokers: [login], logLevel: logLevel.NOTHING, retry: { retries: 0 }, sasl: { mechanism, username: USER, password },
    }).admin();
    try {
      await client.connect();
      await client.disconnect();
      return "in";
    } catch (error) {
      return (error.originalError || error.cause || error).name;
    }
  };
  const found = {};
  for (const mechanism of ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]) {
    const right = await attempt(mechanism, PASSWORD);
    if (right !== "in") throw new Error(`${mechanism}: ${right}`);
    found[mechanism] = (await attempt(mechanism, "wrong")) === "KafkaJSSASLAuthenticationError";
  }
  return found;
}

const SESSION = {
  records,
  gzip: codec("gzip", CompressionTypes.GZIP),
  idempotence: codec("idempotence", CompressionTypes.None, { idempotent: true, maxInFlightRequests: 1 }),
  group,
  transactions,
  "transactional-offsets": transactionalOffsets,
  times,
  topics,
  groups,
  acls,
  logins,
};

async function main() {
  await admin.connect();
  for (const [feature, run] of Object.entries(SESSION)) {
    try {
      console.log(JSON.stringify({ feature, facts: await run() }));
    } catch (error) {
      console.log(JSON.stringify({ feature, error: `${error.name}: ${error.message}` }));
    }
  }
  await admin.disconnect();
}

main();
