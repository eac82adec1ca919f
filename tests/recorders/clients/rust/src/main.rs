//! What rskafka does in the recording: clients HOST:PORT

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use chrono::Utc;
use rskafka::client::partition::{Compression, OffsetAt, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

const TOPIC: &str = "rskafka-orders";
const VALUES: [&str; 3] = ["chair", "table", "lamp"];
const PATIENCE: Duration = Duration::from_secs(60);
const WAIT_MS: i32 = 5_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let bootstrap = std::env::args().nth(1).ok_or("HOST:PORT is missing")?;
    tokio::time::timeout(PATIENCE, session(bootstrap)).await?
}

async fn session(bootstrap: String) -> Result<(), Box<dyn Error>> {
    let client = ClientBuilder::new(vec![bootstrap]).client_id("shop-floor").build().await?;
    let controller = client.controller_client()?;
    controller.create_topic(TOPIC, 1, 1, WAIT_MS).await?;
    let partition = client.partition_client(TOPIC, 0, UnknownTopicHandling::Retry).await?;
    partition.produce(VALUES.map(order).to_vec(), Compression::NoCompression).await?;
    let (records, _) = partition.fetch_records(0, 1..1_000_000, WAIT_MS).await?;
    if records.len() != VALUES.len() {
        return Err(format!("{} records were read", records.len()).into());
    }
    partition.get_offset(OffsetAt::Latest).await?;
    partition.delete_records(1, WAIT_MS).await?;
    client.list_topics().await?;
    controller.delete_topic(TOPIC, WAIT_MS).await?;
    Ok(())
}

fn order(value: &str) -> Record {
    Record {
        key: Some(b"k".to_vec()),
        value: Some(value.into()),
        headers: BTreeMap::from([("n".to_owned(), b"1".to_vec())]),
        timestamp: Utc::now(),
    }
}
