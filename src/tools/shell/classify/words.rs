//! Words of a script, with bash's quoting undone.

/// A word after quote removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// It means exactly this.
    Literal(String),
    /// It is one variable and nothing else.
    Variable(String),
    /// It contains an expansion; what it means is only known when it runs.
    Dynamic(String),
}

impl Word {
    /// Reads the source text of one word.
    pub fn read(source: &str) -> Self {
        if let Some(text) = unquote(source) {
            return Self::Literal(text);
        }
        let bare = source.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(source);
        let name = bare
            .strip_prefix('$')
            .map(|rest| rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest));
        match name {
            Some(name) if is_name(name) => Self::Variable(name.to_owned()),
            _ => Self::Dynamic(source.to_owned()),
        }
    }

    /// The last segment of a path that begins with an expansion, as in `"$VENV/bin/python"`.
    pub fn file_name(&self) -> Option<String> {
        let Self::Dynamic(source) = self else { return None };
        let runs_something = source.contains(['`', '(', '<', '>']);
        let (_, name) = source.rsplit_once('/').filter(|_| !runs_something)?;
        unquote(name.trim_end_matches('"')).filter(|name| !name.is_empty())
    }

    /// The text of a literal word.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Variable(_) | Self::Dynamic(_) => None,
        }
    }
}

/// Whether a text is a variable name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Quote removal. `None`: the word contains an expansion.
fn unquote(source: &str) -> Option<String> {
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(escaped) => out.push(escaped),
            },
            '\'' => out.extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => double_quoted(&mut chars, &mut out)?,
            '$' => match chars.peek() {
                Some('\'') => {
                    chars.next();
                    ansi_c(&mut chars, &mut out);
                }
                Some('"') => {}
                None => out.push('$'),
                Some(_) => return None,
            },
            '`' | '*' | '?' | '[' | '(' | '<' | '>' => return None,
            // Braces around no list are themselves, as in `xargs -I{}`.
            '{' if chars.clone().take_while(|c| *c != '}').any(|c| matches!(c, ',' | '.')) => return None,
            other => out.push(other),
        }
    }
    Some(out)
}

fn double_quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Option<()> {
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '`' => return None,
            // A dollar sign that begins nothing is itself.
            '$' if matches!(chars.peek(), Some('"' | ' ' | '.' | ',' | '/' | ')' | '|' | '%') | None) => out.push('$'),
            '$' => return None,
            '\\' => match chars.next() {
                Some(escaped @ ('$' | '`' | '"' | '\\')) => out.push(escaped),
                Some('\n') | None => {}
                Some(other) => out.extend(['\\', other]),
            },
            other => out.push(other),
        }
    }
    Some(())
}

/// `$'…'`: escapes as in C. Unknown ones stay as they are.
fn ansi_c(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    while let Some(c) = chars.next() {
        match c {
            '\'' => break,
            '\\' => {
                let Some(kind) = chars.next() else { break };
                let (radix, most, first) = match kind {
                    'x' => (16, 2, 0),
                    'u' => (16, 4, 0),
                    'U' => (16, 8, 0),
                    '0'..='7' => (8, 2, kind.to_digit(8).unwrap_or_default()),
                    other => {
                        out.push(match other {
                            'n' => '\n',
                            't' => '\t',
                            'r' => '\r',
                            other => other,
                        });
                        continue;
                    }
                };
                let mut value = first;
                for _ in 0..most {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
                    value = value.wrapping_mul(radix).wrapping_add(digit);
                    chars.next();
                }
                out.push(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => out.push(other),
        }
    }
}

/// The words of a command that consists of nothing but words: no expansion, operator, comment, assignment or second
/// line. `None` for anything else.
///
/// This is deliberately far narrower than bash's grammar, and does not rely on a parser for it: what is accepted here
/// means the same to everybody.
pub(super) fn plain(command: &str) -> Option<Vec<String>> {
    // Exactly what bash takes for blank space; it would run a command named `\u{a0}ls`.
    let mut rest = command.trim_matches([' ', '\t', '\n']);
    let mut words = Vec::new();
    while !rest.is_empty() {
        let mut word = String::new();
        let mut quoted = false;
        while let Some(c) = rest.chars().next() {
            match c {
                ' ' => break,
                '\'' => {
                    let (inner, after) = rest[1..].split_once('\'')?;
                    word.push_str(inner);
                    (rest, quoted) = (after, true);
                }
                '"' => {
                    let (inner, after) = rest[1..].split_once('"')?;
                    if inner.contains(['$', '`', '\\', '!']) {
                        return None;
                    }
                    word.push_str(inner);
                    (rest, quoted) = (after, true);
                }
                _ if is_plain(c) && !(c == '~' && word.is_empty() && !quoted) => {
                    word.push(c);
                    rest = &rest[c.len_utf8()..];
                }
                _ => return None,
            }
        }
        // Control characters are refused even in quotes: no option or path of a harmless command needs them.
        if word.contains(char::is_control) || (words.is_empty() && (quoted || word.contains('='))) {
            return None;
        }
        words.push(word);
        rest = rest.trim_start_matches(' ');
    }
    (!words.is_empty()).then_some(words)
}

/// Characters that mean themselves outside of quotes, wherever they stand.
fn is_plain(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | ',' | '/' | ':' | '+' | '@' | '%' | '^' | '=' | '~') || c.is_alphanumeric()
}
