//! Just enough of Rust's grammar to find the paths of a file: words, `::` and `use` groups, without comments and text.

/// A `::`-separated path found in a file, with the line it begins on and the module it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub line: usize,
    pub segments: Vec<String>,
    /// Inline modules around the path.
    pub nesting: usize,
}

/// One word, `::`, or other punctuation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    Word(String),
    PathSep,
    Punct(char),
}

/// Splits Rust source into tokens with their lines, without comments, strings, characters and lifetimes.
pub fn tokens(source: &str) -> Vec<(usize, Token)> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut found = Vec::new();
    let (mut i, mut line) = (0, 1);
    while i < chars.len() {
        let start = i;
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 || i >= chars.len() {
                        break;
                    }
                }
            }
            '"' => i = string_end(&chars, i),
            '\'' => {
                // A character ends with a quote after one (possibly escaped) character; anything else is a lifetime.
                if at(i + 1) == '\\' {
                    i += 3;
                    while i < chars.len() && at(i) != '\'' {
                        i += 1;
                    }
                    i += 1;
                } else if at(i + 2) == '\'' {
                    i += 3;
                } else {
                    i += 1;
                    while at(i).is_alphanumeric() || at(i) == '_' {
                        i += 1;
                    }
                }
            }
            c if c.is_alphabetic() || c == '_' => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                let word: String = chars[start..i].iter().collect();
                let raw = word.ends_with('r') && matches!(word.as_str(), "r" | "br" | "cr");
                if raw && (at(i) == '"' || at(i) == '#') {
                    let hashes = chars[i..].iter().take_while(|c| **c == '#').count();
                    if at(i + hashes) == '"' {
                        i = raw_string_end(&chars, i + hashes + 1, hashes);
                    } else {
                        // `r#type`: the word after the mark is what counts.
                        i += hashes;
                    }
                } else {
                    found.push((line, Token::Word(word)));
                }
            }
            ':' if at(i + 1) == ':' => {
                found.push((line, Token::PathSep));
                i += 2;
            }
            c if c.is_whitespace() => i += 1,
            c => {
                found.push((line, Token::Punct(c)));
                i += 1;
            }
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

fn string_end(chars: &[char], open: usize) -> usize {
    let mut i = open + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

fn raw_string_end(chars: &[char], mut i: usize, hashes: usize) -> usize {
    while i < chars.len() {
        if chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return i + 1 + hashes;
        }
        i += 1;
    }
    i
}

/// Every path of a file; the groups of a `use` are multiplied out.
pub fn paths(source: &str) -> Vec<Found> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut inline_modules: Vec<usize> = Vec::new();
    let (mut i, mut depth) = (0, 0_usize);
    while let Some((_, token)) = tokens.get(i) {
        match token {
            Token::Punct('{') => depth += 1,
            Token::Punct('}') => {
                depth = depth.saturating_sub(1);
                if inline_modules.last() == Some(&depth) {
                    inline_modules.pop();
                }
            }
            Token::Word(word)
                if word == "mod"
                    && matches!(tokens.get(i + 1), Some((_, Token::Word(_))))
                    && matches!(tokens.get(i + 2), Some((_, Token::Punct('{')))) =>
            {
                inline_modules.push(depth);
            }
            Token::Word(word) => {
                let in_use = word == "use";
                let start = if in_use { i + 1 } else { i };
                let end = collect(&tokens, start, &[], in_use, inline_modules.len(), &mut found);
                i = end.max(i + 1);
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// Reads one path at `i` (in a `use` with its groups), adds it below `prefix`, and returns the index behind it.
fn collect(
    tokens: &[(usize, Token)],
    mut i: usize,
    prefix: &[String],
    in_use: bool,
    nesting: usize,
    found: &mut Vec<Found>,
) -> usize {
    let mut segments = prefix.to_vec();
    let line = tokens.get(i).map_or(0, |(line, _)| *line);
    if matches!(tokens.get(i), Some((_, Token::PathSep))) {
        i += 1;
    }
    loop {
        match tokens.get(i) {
            Some((_, Token::Word(word))) if word != "as" => segments.push(word.clone()),
            Some((_, Token::Punct('*'))) if in_use => segments.push("*".to_owned()),
            Some((_, Token::Punct('{'))) if in_use => {
                i += 1;
                while !matches!(tokens.get(i), None | Some((_, Token::Punct('}')))) {
                    i = collect(tokens, i, &segments, in_use, nesting, found);
                    while !matches!(tokens.get(i), None | Some((_, Token::Punct(',' | '}')))) {
                        i += 1;
                    }
                    if matches!(tokens.get(i), Some((_, Token::Punct(',')))) {
                        i += 1;
                    }
                }
                return i + 1;
            }
            _ => break,
        }
        i += 1;
        if !matches!(tokens.get(i), Some((_, Token::PathSep))) {
            break;
        }
        i += 1;
    }
    if segments.len() > prefix.len() {
        found.push(Found { line, segments, nesting });
    }
    i
}
