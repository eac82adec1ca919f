//! Decodes and encodes messages with the crate kafka-protocol, for benchmarks/languages.py, which describes what it is
//! asked.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{stdin, BufRead};
use std::path::Path;
use std::time::Instant;
use std::{env, fs};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiVersionsResponse, ConsumerGroupHeartbeatResponse, FetchResponse, HeartbeatResponse, JoinGroupResponse,
    MetadataResponse, OffsetFetchResponse, ProduceRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable};

const SWEPT: usize = 64 << 20;

trait Codec {
    fn decode(&self);
    fn encode(&self) -> BytesMut;
}

/// One message at one version, with its bytes.
struct Case<M> {
    version: i16,
    data: Bytes,
    decoded: M,
}

impl<M: Decodable + Encodable> Case<M> {
    fn read(data: &Bytes, version: i16) -> M {
        M::decode(&mut data.clone(), version).expect("bytes of a message")
    }
}

impl<M: Decodable + Encodable> Codec for Case<M> {
    fn decode(&self) {
        black_box(Self::read(&self.data, self.version));
    }

    fn encode(&self) -> BytesMut {
        let size = self.decoded.compute_size(self.version).expect("a message of this version");
        let mut made = BytesMut::with_capacity(size);
        self.decoded.encode(&mut made, self.version).expect("a message of this version");
        made
    }
}

fn case<M: Decodable + Encodable + 'static>(data: Bytes, version: i16) -> Box<dyn Codec> {
    let decoded = Case::<M>::read(&data, version);
    Box::new(Case { version, data, decoded })
}

/// Returns the codec of a file MESSAGE.VERSION, or nothing for a message that the crate does not have.
fn load(path: &Path, name: &str) -> Option<Box<dyn Codec>> {
    let (message, version) = name.split_once('.').expect("MESSAGE.VERSION");
    let version = version.parse().expect("a version");
    let data = Bytes::from(fs::read(path).expect("a file"));
    let make = match message {
        "ApiVersionsResponse" => case::<ApiVersionsResponse>,
        "ConsumerGroupHeartbeatResponse" => case::<ConsumerGroupHeartbeatResponse>,
        "FetchResponse" => case::<FetchResponse>,
        "HeartbeatResponse" => case::<HeartbeatResponse>,
        "JoinGroupResponse" => case::<JoinGroupResponse>,
        "MetadataResponse" => case::<MetadataResponse>,
        "OffsetFetchResponse" => case::<OffsetFetchResponse>,
        "ProduceRequest" => case::<ProduceRequest>,
        _ => return None,
    };
    let codec = make(data.clone(), version);
    assert!(codec.encode() == data, "{name}: the crate writes other bytes");
    Some(codec)
}

fn timed(codec: &dyn Codec, direction: &str, calls: u64) -> u128 {
    let start = Instant::now();
    if direction == "decode" {
        (0..calls).for_each(|_| codec.decode());
    } else {
        (0..calls).for_each(|_| drop(black_box(codec.encode())));
    }
    start.elapsed().as_nanos()
}

fn main() {
    let directory = env::args().nth(1).expect("a directory");
    let mut codecs = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("a file").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if let Some(codec) = load(&path, &name) {
            codecs.insert(name, codec);
        }
    }
    println!("{}", codecs.keys().cloned().collect::<Vec<_>>().join(" "));
    let other = vec![1u8; SWEPT];
    for line in stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let [caches, direction, name, calls] = words[..] else { panic!("{line}") };
        if caches == "cold" {
            black_box(other.iter().step_by(64).map(|&byte| u64::from(byte)).sum::<u64>());
        }
        println!("{}", timed(codecs[name].as_ref(), direction, calls.parse().expect("a number")));
    }
}
