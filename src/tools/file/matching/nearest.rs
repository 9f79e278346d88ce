//! What to tell a model whose text was not found: lines that look like it. Bounded, and only advice.

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::Serialize;

/// Texts larger than this are not searched for similar lines.
const MAX_TEXT: usize = 1024 * 1024;
/// Bytes of a line that are compared and shown.
const MAX_LINE: usize = 200;
/// Lines shown.
const MAX_SHOWN: usize = 3;
/// Share of common letter pairs from which two lines count as similar.
const SIMILAR: f64 = 0.6;

/// A line that looks like the searched text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearLine {
    /// Its number, from 1.
    pub line: usize,
    /// Its text, perhaps cut.
    pub text: String,
}

/// The lines most like the longest line of `needle`, best first.
pub fn nearest(text: &[u8], needle: &str) -> Vec<NearLine> {
    let wanted = needle.lines().map(str::trim).max_by_key(|line| line.len()).unwrap_or_default();
    if text.len() > MAX_TEXT || wanted.len() < 3 {
        return Vec::new();
    }
    let wanted = pairs(wanted.as_bytes());
    let mut scored: Vec<(f64, usize, &[u8])> = text
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter_map(|(index, line)| {
            let score = similarity(&wanted, &pairs(line));
            (score >= SIMILAR).then_some((score, index + 1, line))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(MAX_SHOWN);
    scored
        .into_iter()
        .map(|(_, line, bytes)| {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LINE)]);
            NearLine { line, text: shown.trim_end().to_owned() }
        })
        .collect()
}

/// Whether the text holds `needle` in another Unicode normalisation: it looks the same and has other bytes.
pub fn normalized_twin(text: &[u8], needle: &str) -> bool {
    if text.len() > MAX_TEXT || (needle.is_ascii() && text.is_ascii()) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let composed = ComposingNormalizerBorrowed::new_nfc();
    composed.normalize(text).contains(composed.normalize(needle).as_ref())
}

/// Sorted pairs of neighbouring bytes, white space left out.
fn pairs(line: &[u8]) -> Vec<[u8; 2]> {
    let letters: Vec<u8> = line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(MAX_LINE).collect();
    let mut pairs: Vec<[u8; 2]> = letters.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    pairs.sort_unstable();
    pairs
}

/// Dice coefficient of two sorted lists.
fn similarity(a: &[[u8; 2]], b: &[[u8; 2]]) -> f64 {
    let (mut i, mut j, mut common) = (0, 0, 0);
    if 2.0 * a.len().min(b.len()) as f64 / (a.len() + b.len()).max(1) as f64 <= SIMILAR - f64::EPSILON {
        return 0.0;
    }
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
        }
    }
    2.0 * f64::from(common) / (a.len() + b.len()).max(1) as f64
}
