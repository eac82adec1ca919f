// Controls an embedded broker over HTTP while kafkajs writes to it: node control.js CONTROL_URL SERVERS TOPIC
//
// The output is one line of JSON with the facts that were found.

const { Kafka, logLevel } = require("kafkajs");

const [url, servers, topic] = process.argv.slice(2);
const kafka = new Kafka({ brokers: servers.split(","), logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50 } });

async function send(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

async function main() {
  const producer = kafka.producer();
  await producer.connect();
  await send("POST", "/changes", { kind: "MoveLeader", topic, partition: 0, broker: 0 });
  await send("POST", "/requests");
  const effect = { kind: "Fail", error: "NOT_ENOUGH_REPLICAS" };
  const fault = await send("POST", "/faults", { effect, api: "Produce", topic, times: 2 });
  await producer.send({ topic, messages: [{ value: "one" }] });
  const { hits } = await send("GET", `/faults/${fault.number}`);
  const { requests } = await send("GET", `/requests?api=Produce&topic=${topic}`);
  await send("POST", "/changes", { kind: "KillBroker", broker: 0 });
  await producer.send({ topic, messages: [{ value: "two" }] });
  const state = await send("GET", "/");
  await send("POST", "/changes", { kind: "StartBroker", broker: 0 });
  await producer.disconnect();
  const facts = { hits, errors: requests.map((each) => each.errors), leader: state.topics[topic][0].leader,
    running: state.brokers.map((each) => each.running) };
  console.log(JSON.stringify(facts));
}

main();
