//! What a rule says about the content of a call: words of a command, or a path.
//!
//! Invariant: only the rule's own text is ever read as a pattern. What it is compared with, a path with brackets in its
//! name for instance, is data.

use std::sync::OnceLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::places::is_absolute;

/// Whether names that differ in case alone mean the same file.
const FOLDS_CASE: bool = cfg!(any(windows, target_os = "macos"));

/// Longest content of a rule in bytes: as long as a command somebody would approve.
const MAX_CONTENT: usize = 64 << 10;
/// Longest pattern of a path in bytes: no path is longer.
const MAX_PATH: usize = 4096;

/// How the content stands in a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `Tool:content`, which is a signature or the beginning of one.
    Signature,
    /// `Tool(content)`, or the parts of an update.
    Parenthesis,
}

/// The content of a rule.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// `*`: whatever the content is.
    Any,
    /// `content:*`: this, alone or with more words behind it.
    Words(Words),
    /// Everything else.
    Text(Box<Text>),
}

/// The beginning of a command up to the end of a word, or a directory with all that is in it.
#[derive(Debug, Clone)]
pub(super) struct Words {
    text: String,
    path: Option<PathPattern>,
}

/// Exact text, text that begins so, or a path pattern.
#[derive(Debug, Clone)]
pub(super) struct Text {
    text: String,
    /// What is before a trailing `*`.
    prefix: Option<String>,
    /// Made when a path is compared with it: thousands of rules about commands cost nothing then.
    path: OnceLock<Option<PathPattern>>,
    /// The text with each `*` standing for anything: for lists that refuse or ask.
    wild: Option<Wild>,
    /// `content:*` in a signature is a beginning like any other, but lists that refuse also take it for whole words.
    words: Option<String>,
}

impl Content {
    /// Parses the content of a rule.
    ///
    /// # Errors
    /// Why it cannot mean anything.
    pub(super) fn parse(content: &str, form: Form) -> Result<Self, String> {
        if content.trim().is_empty() {
            return Err("its content is empty; leave it out to name the tool alone, or write * for all calls".into());
        }
        if content.len() > MAX_CONTENT {
            return Err(format!("its content has {} bytes, more than {MAX_CONTENT}", content.len()));
        }
        if content.chars().all(|c| c == '*') {
            return Ok(Self::Any);
        }
        let words = content.strip_suffix(":*").map(str::trim_end);
        if form == Form::Parenthesis
            && let Some(text) = words
        {
            if text.is_empty() {
                return Ok(Self::Any);
            }
            let path = PathPattern::literal(text);
            return Ok(Self::Words(Words { text: text.to_owned(), path }));
        }
        if form == Form::Parenthesis && (content == "~" || content.starts_with("~/")) {
            return Err("~ is not expanded; write the absolute path".into());
        }
        let path = OnceLock::new();
        if form == Form::Parenthesis && content.len() <= MAX_PATH {
            let parsed = PathPattern::parse(content).map_err(|why| {
                format!("{content:?} is no path pattern ({why}); a command is written as Tool:command")
            })?;
            // It is empty still.
            let _ = path.set(Some(parsed));
        }
        let prefix = content.ends_with('*').then(|| content.trim_end_matches('*').to_owned());
        let wild = content.trim_end_matches('*').contains('*').then(|| Wild::of(content));
        let words = words.filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Self::Text(Box::new(Text { text: content.to_owned(), prefix, path, wild, words })))
    }

    /// Whether it says more than "everything".
    pub(super) fn is_specific(&self) -> bool {
        !matches!(self, Self::Any)
    }

    /// Whether it is exactly this content, and not merely its beginning.
    pub(super) fn is_exactly(&self, content: &str) -> bool {
        matches!(self, Self::Text(text) if text.text == content)
    }

    /// Whether it covers a content that is no path.
    pub(super) fn covers_text(&self, content: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Words(words) => begins_with_words(content, &words.text),
            Self::Text(text) => {
                text.text == content || text.prefix.as_deref().is_some_and(|prefix| content.starts_with(prefix))
            }
        }
    }

    /// Whether a list that refuses or asks takes it to cover the content: a `*` inside stands for anything.
    pub(super) fn may_cover_text(&self, content: &str) -> bool {
        self.covers_text(content)
            || matches!(self, Self::Text(text) if text.wild.as_ref().is_some_and(|wild| wild.is_match(content))
                || text.words.as_deref().is_some_and(|words| begins_with_words(content, words)))
    }

    /// Whether a list that refuses or asks takes it to cover the path: all that is in a directory is the directory too,
    /// which a search looks through.
    pub(super) fn may_cover_path(&self, name: &str) -> bool {
        self.covers_path(name)
            || matches!(self, Self::Text(text) if text.path(name).is_some_and(|path| path.is_directory_of(name)))
    }

    /// Whether it covers the path of this name.
    pub(super) fn covers_path(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Words(words) => words.path.as_ref().is_some_and(|path| path.holds(name)),
            Self::Text(text) => text.text == name || text.path(name).is_some_and(|path| path.matches(name)),
        }
    }
}

impl Text {
    /// The pattern of a path, unless it plainly is about others than `name`.
    fn path(&self, name: &str) -> Option<&PathPattern> {
        if self.path.get().is_none() && !may_name(&self.text, name) {
            return None;
        }
        self.path.get_or_init(|| PathPattern::parse(&self.text).ok()).as_ref()
    }
}

/// Whether all letters a pattern asks for stand in a name. Where that is not plain to see, they may.
fn may_name(pattern: &str, name: &str) -> bool {
    let plain = !FOLDS_CASE && !pattern.contains(['[', '{', '\\']) && !pattern.contains("..");
    !plain || pattern.split(['*', '?', '/', '.']).all(|letters| name.contains(letters))
}

fn begins_with_words(content: &str, words: &str) -> bool {
    content.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// A pattern in which `*` alone has a meaning. Matched in one pass, whatever the pattern.
#[derive(Debug, Clone)]
struct Wild {
    first: String,
    inner: Vec<String>,
    last: String,
}

impl Wild {
    fn of(text: &str) -> Self {
        let mut pieces = text.split('*').map(str::to_owned);
        let first = pieces.next().unwrap_or_default();
        let last = pieces.next_back().unwrap_or_default();
        Self { first, inner: pieces.filter(|piece| !piece.is_empty()).collect(), last }
    }

    fn is_match(&self, text: &str) -> bool {
        let Some(mut rest) = text.strip_prefix(&*self.first).and_then(|rest| rest.strip_suffix(&*self.last)) else {
            return false;
        };
        // The first place a piece stands at leaves the most room for the pieces behind it.
        self.inner.iter().all(|piece| match rest.find(&**piece) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        })
    }
}

/// Which names of a path a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Absolute ones.
    Absolute,
    /// Those relative to the working directory, inside of it.
    Inside,
    /// All of them: the pattern says nothing about where the file lies.
    Anywhere,
}

/// A pattern for paths. `*` and `?` stay within a segment, `**` crosses segments, `[…]` and `{…}` as in a shell; a
/// trailing `*` also covers everything below what it matches.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    scope: Scope,
    /// Without `.`, double slashes and what `..` takes back.
    text: String,
    prefix: Option<String>,
    globs: GlobSet,
    /// The directory itself, where the pattern is all that is in one.
    directory: Option<GlobSet>,
}

impl PathPattern {
    fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATH {
            return Err(format!("it has more than {MAX_PATH} bytes"));
        }
        let (scope, text) = plain(text)
            .ok_or("where its .. leads is not known; write the path without it, absolute where it is elsewhere")?;
        let pattern = match scope {
            Scope::Anywhere if !text.starts_with("**/") => format!("**/{text}"),
            _ => text.clone(),
        };
        let below = (pattern.ends_with('*') && !pattern.ends_with("**")).then(|| format!("{pattern}/**"));
        let globs = glob_set([Some(pattern.as_str()), below.as_deref()])?;
        let directory = pattern.strip_suffix("/**").map(|pattern| glob_set([Some(pattern), None])).transpose()?;
        let prefix = text.ends_with('*').then(|| text.trim_end_matches('*').to_owned());
        Ok(Self { scope, text, prefix, globs, directory })
    }

    /// A path in which nothing is a pattern.
    fn literal(text: &str) -> Option<Self> {
        let (scope, text) = plain(text)?;
        Some(Self { scope, text, prefix: None, globs: GlobSet::empty(), directory: None })
    }

    fn sees(&self, name: &str) -> bool {
        let above = name == ".." || name.starts_with("../");
        match self.scope {
            Scope::Absolute => is_absolute(name),
            Scope::Inside => !above && !is_absolute(name),
            Scope::Anywhere => !above,
        }
    }

    fn matches(&self, name: &str) -> bool {
        self.sees(name)
            && (self.text == name
                || self.prefix.as_deref().is_some_and(|prefix| !prefix.is_empty() && name.starts_with(prefix))
                || self.globs.is_match(name))
    }

    fn is_directory_of(&self, name: &str) -> bool {
        self.sees(name) && self.directory.as_ref().is_some_and(|directory| directory.is_match(name))
    }

    /// Whether the path is this one or lies below it.
    fn holds(&self, name: &str) -> bool {
        let below = || {
            let rest = name.strip_prefix(self.text.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.text.ends_with('/'))
        };
        self.sees(name) && (self.text == "." || below())
    }
}

/// A set rather than matchers: those panic over what is too large or too deep to compile.
fn glob_set(patterns: [Option<&str>; 2]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns.into_iter().flatten() {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .case_insensitive(FOLDS_CASE)
            .build()
            .map_err(|error| error.kind().to_string())?;
        set.add(glob);
    }
    set.build().map_err(|_| "it is nested too deeply, or too large".to_owned())
}

/// The pattern as one would write the path itself: `./` says that it begins at the working directory, a final slash
/// means what is in the directory. `None` where `..` follows a pattern or
/// leads out of the working directory.
fn plain(text: &str) -> Option<(Scope, String)> {
    #[cfg(windows)]
    let text = &text.replace('\\', "/");
    let absolute = is_absolute(text);
    let here = text == "." || text.starts_with("./");
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.split('/') {
        match segment {
            "" | "." => {}
            ".." if segments.last().is_some_and(|last| !last.contains(['*', '?', '[', '{'])) => {
                segments.pop();
            }
            ".." if absolute && segments.is_empty() => {}
            ".." => return None,
            segment => segments.push(segment),
        }
    }
    if text.ends_with('/') && !segments.is_empty() {
        segments.push("**");
    }
    let scope = match segments.first() {
        _ if absolute => Scope::Absolute,
        Some(&"**") if !here => Scope::Anywhere,
        _ if segments.len() == 1 && !here && !text.contains('/') => Scope::Anywhere,
        _ => Scope::Inside,
    };
    let joined = segments.join("/");
    let text = match scope {
        Scope::Absolute if text.starts_with('/') => format!("/{joined}"),
        _ if joined.is_empty() => ".".to_owned(),
        _ => joined,
    };
    Some((scope, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Content {
        Content::parse(text, Form::Parenthesis).unwrap()
    }

    #[test]
    fn path_patterns_see_the_names_they_are_written_for() {
        for (pattern, name, expected) in [
            ("./.env", ".env", true),
            ("./.env", "a/.env", false),
            ("./.env", "/w/.env", false),
            (".env", "/w/a/.env", true),
            (".env", "/w/a/.env.local", false),
            (".env*", "/w/a/.env.local", true),
            ("**/.env*", ".env", true),
            ("**/.env*", "/w/server/.env", true),
            ("**/.env*", "/w/.env.d/secret", true),
            ("/w/**/.env", "/w/.env", true),
            ("/w/**/.env", "/w/a/b/.env", true),
            ("//w//./a/../**/.env", "/w/a/b/.env", true),
            ("/w/**/.env", "/v/.env", false),
            ("src/**", "src/a/b.ts", true),
            ("src/**", "/src/a", false),
            ("src/**", "lib/src/a", false),
            ("src/", "src/a/b.ts", true),
            ("src/*", "src/a/b.ts", true),
            ("src/*.ts", "src/a/b.ts", false),
            ("src/*.ts", "src/b.ts", true),
            ("*/x", "/x", false),
            ("*/x", "../x", false),
            ("**", "../x", true),
            ("src/{a,b}/*.rs", "src/b/x.rs", true),
            ("src/[ab]/x", "src/b/x", true),
            ("src/[id]/x", "src/[id]/x", true),
            ("src/[id]/*", "src/[id]/x", true),
            ("/w:*", "/w/a", true),
            ("/w:*", "/w", true),
            ("/w:*", "/war", false),
            ("/:*", "/war", true),
            ("./src:*", "src/a", true),
            (".:*", "src/a", true),
            (".:*", "/src/a", false),
        ] {
            assert_eq!(content(pattern).covers_path(name), expected, "{pattern} on {name}");
        }
        for pattern in ["/w/secrets/**", "/w/secrets/", "/w/secrets/*", "**/secrets/**"] {
            let directory = content(pattern).may_cover_path("/w/secrets");
            assert_eq!(directory, !pattern.ends_with("/*"), "{pattern}");
            assert!(!content(pattern).covers_path("/w/secrets"), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_is_made_later_covers_the_same_paths() {
        for pattern in
            ["src/*.ts", "./src/**", "/w//src/./x", "src/../lib/x", "{src,lib}/x", "src/[xy]", ".env*", "src/"]
        {
            for name in ["src/x.ts", "src/x", "/w/src/x", "lib/x", ".env.local", "/w/.env", "src", "", "a/src/b"] {
                let later = Content::parse(pattern, Form::Signature).unwrap();
                assert_eq!(later.may_cover_path(name), content(pattern).may_cover_path(name), "{pattern} on {name}");
                assert_eq!(later.covers_path(name), content(pattern).covers_path(name), "{pattern} on {name}");
            }
        }
    }

    #[test]
    fn commands_are_compared_exactly_by_words_or_by_their_beginning() {
        for (text, command, covers, may_cover) in [
            ("npm test", "npm test", true, true),
            ("npm test", "npm test x", false, false),
            ("npm test:*", "npm test", true, true),
            ("npm test:*", "npm test -- x", true, true),
            ("npm test:*", "npm testing", false, false),
            ("npm test*", "npm testing", true, true),
            ("git push * --force", "git push origin a/b --force", false, true),
            ("git push *", "git push origin", true, true),
            ("echo [a]", "echo a", false, false),
            ("git push * --force", "git push --force", false, false),
            ("a*a", "a", false, false),
            ("a*ab*b", "ab", false, false),
            ("a*ab*b", "aababb", false, true),
            ("a*b*a*", "a\nb\na\nc", false, true),
            ("*", "anything", true, true),
            (":*", "anything", true, true),
        ] {
            assert_eq!(content(text).covers_text(command), covers, "{text} on {command}");
            assert_eq!(content(text).may_cover_text(command), may_cover, "{text} may cover {command}");
        }
        let signature = |text| Content::parse(text, Form::Signature).unwrap();
        assert!(signature("npm run test:*").covers_text("npm run test:unit"));
        assert!(!signature("rm:*").covers_text("rm x"));
        assert!(signature("rm:*").may_cover_text("rm x"), "a refusal that is written the other way is one too");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in ["", " ", "~/.ssh/**", "~", "../lib/**", "./a/../../b", "src/*/../b", "src/[ab", "src/{a", "src/a}"]
        {
            assert!(Content::parse(text, Form::Parenthesis).is_err(), "{text:?}");
        }
        let (deep, long) = (format!("{}b{}", "{a,".repeat(1000), "}".repeat(1000)), "x".repeat(MAX_CONTENT + 1));
        for text in [&deep, &long] {
            assert!(Content::parse(text, Form::Parenthesis).is_err(), "{}", &text[..20]);
        }
        assert!(Content::parse(&long, Form::Signature).is_err());
        let command = format!("echo {}*x", "y*[".repeat(10_000));
        for form in [Form::Signature, Form::Parenthesis] {
            let content = Content::parse(&command, form).expect("too long for a path, so it is a command");
            assert!(content.may_cover_text(&command));
            assert!(!content.may_cover_text("echo"));
        }
        for text in ["", "  "] {
            assert!(Content::parse(text, Form::Signature).is_err(), "{text:?}");
        }
        assert!(Content::parse("[ -f x", Form::Signature).is_ok(), "a signature may hold any command");
    }
}
