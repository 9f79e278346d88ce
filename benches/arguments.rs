//! Arguments of a call from text to validated, for `bench/arguments/run.mjs`: each line on standard input asks for so
//! many rounds, each line on standard output says how many nanoseconds they took together.

use std::hint::black_box;
use std::io::{BufRead, Write};

use blade_agent_sdk::schema::Schema;
use serde_json::Value;
use tokio::time::Instant;

/// The one the addon has, where the addon is not in the build and has brought it.
#[cfg(not(feature = "node-api"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/arguments");
    let schema = Schema::compile(&std::fs::read_to_string(format!("{folder}/schema.json"))?)?;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(format!("{folder}/document.json"))?)?;
    let text = document.to_string();
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let rounds: u32 = line?.trim().parse()?;
        let started = Instant::now();
        for _ in 0..rounds {
            let matched = schema.matches(black_box(&text)).ok_or("the document does not match its schema")?;
            black_box(matched);
        }
        writeln!(out, "{}", started.elapsed().as_nanos())?;
        out.flush()?;
    }
    Ok(())
}
