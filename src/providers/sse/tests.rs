use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/sse/{name}", env!("CARGO_MANIFEST_DIR"))).expect(name)
}

/// Events of a body cut into pieces, in the form the shared cases have.
fn parse(pieces: &[&[u8]]) -> Vec<Value> {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    let (mut id, mut retry) = (None, None);
    for piece in pieces {
        parser.push(Bytes::copy_from_slice(piece));
        while let Some(event) = parser.next_event().expect("small events") {
            let mut entry = json!({"data": String::from_utf8_lossy(event.data)});
            if !event.event.is_empty() {
                entry["event"] = String::from_utf8_lossy(event.event).into();
            }
            if parser.last_id().map(str::to_owned) != id {
                id = parser.last_id().map(str::to_owned);
                entry["id"] = id.clone().into();
            }
            if parser.retry_ms() != retry {
                retry = parser.retry_ms();
                entry["retry"] = retry.into();
            }
            events.push(entry);
        }
    }
    events
}

#[test]
fn framing_follows_the_algorithm_wherever_the_body_is_cut() {
    let expected: Value = serde_json::from_slice(&fixture("framing-expected.json")).expect("json");
    for (name, expected) in expected.as_object().expect("object") {
        let body = fixture(name);
        assert_eq!(json!(parse(&[&body])), *expected, "{name}");
        let single: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(json!(parse(&single)), *expected, "{name} byte by byte");
        for cut in 0..body.len() {
            assert_eq!(json!(parse(&[&body[..cut], &[], &body[cut..]])), *expected, "{name} cut at {cut}");
        }
    }
}

#[test]
fn an_open_event_is_dropped_unless_the_adapter_asks_for_it() {
    for body in ["data: a\n\ndata: b", "data: a\n\ndata: b\n", "data: a\r\n\r\ndata: b\r"] {
        let mut parser = SseParser::default();
        parser.push(Bytes::from_static(body.as_bytes()));
        assert_eq!(parser.next_event().expect("small").map(|e| e.data.to_vec()), Some(b"a".to_vec()));
        assert_eq!(parser.next_event(), Ok(None));
        assert_eq!(parser.rest().expect("small").map(|e| e.data.to_vec()), Some(b"b".to_vec()), "{body:?}");
        assert_eq!(parser.rest(), Ok(None));
    }
}

#[test]
fn an_event_without_data_is_not_an_event_and_its_name_is_forgotten() {
    assert_eq!(parse(&[b"event: x\n\ndata: a\n\n"]), [json!({"data": "a"})]);
}

#[test]
fn lines_and_events_are_bounded() {
    let too_large = Err(SseTooLarge { limit: 64 });
    let mut parser = SseParser::with_limit(64);
    parser.push(Bytes::from(vec![b'x'; 65]));
    assert_eq!(parser.next_event(), too_large, "a line without end");
    let mut parser = SseParser::with_limit(64);
    parser.push(Bytes::from("data: 0123456789\n".repeat(8)));
    assert_eq!(parser.next_event(), too_large, "an event of many lines");
    let mut parser = SseParser::with_limit(64);
    for _ in 0..6 {
        parser.push(Bytes::from_static(b"0123456789"));
        assert_eq!(parser.next_event(), Ok(None));
    }
    parser.push(Bytes::from_static(b"0123456789\n"));
    assert_eq!(parser.next_event(), too_large, "a line from many pieces");
}

proptest! {
    #[test]
    fn cutting_a_body_changes_nothing(
        body in "(data|event|id|retry|:|x| |\u{FEFF}|世|\n|\r|\r\n|[0-9]){0,40}",
        cuts in prop::collection::vec(0usize..200, 0..6),
    ) {
        let bytes = body.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let mut from = 0;
        let mut pieces = Vec::new();
        for cut in cuts {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        prop_assert_eq!(parse(&pieces), parse(&[bytes]));
    }
}
