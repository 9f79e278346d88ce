//! A script and the simple commands in it, found with tree-sitter.

use std::borrow::Cow;

use tree_sitter::{Node, Parser, Tree};

use super::words::{self, Word};

/// A parsed script.
pub(super) struct Script<'a> {
    source: &'a str,
    tree: Option<Tree>,
    parts: Parts,
}

#[derive(Default)]
struct Parts {
    commands: Vec<Found>,
    redirects: Vec<Word>,
    inputs: Vec<String>,
    assignments: Vec<(String, Word)>,
    changes: Vec<String>,
}

/// One simple command.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Its words; the first one is its name.
    pub words: Vec<Word>,
    /// Its source text without assignments and redirections.
    pub text: String,
    /// It reads the output of another command.
    pub piped: bool,
}

impl<'a> Script<'a> {
    /// Parses a script. What cannot be parsed is in [`Script::has_errors`].
    pub fn parse(source: &'a str) -> Self {
        let mut parser = Parser::new();
        let tree = match parser.set_language(&tree_sitter_bash::LANGUAGE.into()) {
            Ok(()) => parser.parse(masked(source).as_ref(), None),
            Err(_) => None,
        };
        let parts = tree.as_ref().map(|tree| collect(tree.root_node(), source)).unwrap_or_default();
        Self { source, tree, parts }
    }

    /// The source text.
    pub fn source(&self) -> &str {
        self.source
    }

    /// Whether some of it was not understood.
    pub fn has_errors(&self) -> bool {
        self.tree.as_ref().is_none_or(|tree| tree.root_node().has_error())
    }

    /// Every simple command, however deeply nested.
    pub fn commands(&self) -> &[Found] {
        &self.parts.commands
    }

    /// Targets of redirections to files.
    pub fn redirects(&self) -> &[Word] {
        &self.parts.redirects
    }

    /// Texts of here-documents and here-strings.
    pub fn inputs(&self) -> &[String] {
        &self.parts.inputs
    }

    /// Assignments, and redirections to files, as they are written but without the number of a file descriptor.
    pub fn changes(&self) -> &[String] {
        &self.parts.changes
    }

    /// What a variable may hold, as far as the script itself says.
    pub fn values<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Word> {
        self.parts.assignments.iter().filter(move |(assigned, _)| assigned == name).map(|(_, value)| value)
    }

    /// The words of a script that is one plain command. Two judges must agree: the strict reader, and the grammar.
    pub fn single_command(&self) -> Option<Vec<String>> {
        let words = words::plain(self.source)?;
        let root = self.tree.as_ref()?.root_node();
        let only = root.named_child(0)?;
        let alone = root.named_child_count() == 1 && only.kind() == "command" && !root.has_error();
        let [found] = self.parts.commands.as_slice() else { return None };
        let same = found.words.len() == words.len()
            && found.words.iter().zip(&words).all(|(seen, read)| seen.literal() == Some(read));
        (alone && same).then_some(words)
    }
}

/// Walks the whole tree without recursion: scripts can nest deeper than a thread's stack.
/// The source with every byte of what is not ASCII replaced by a letter; offsets stay.
///
/// The grammar's own scanner hands code points to functions of the C library that are only defined for bytes, so some
/// characters read memory that is not theirs. To bash such characters are ordinary parts of words, as letters are.
fn masked(source: &str) -> Cow<'_, str> {
    if source.is_ascii() {
        return Cow::Borrowed(source);
    }
    let mut ascii = String::with_capacity(source.len());
    for c in source.chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            ascii.extend(std::iter::repeat_n('x', c.len_utf8()));
        }
    }
    Cow::Owned(ascii)
}

fn collect(root: Node<'_>, source: &str) -> Parts {
    let mut parts = Parts::default();
    let mut open = vec![(root, false)];
    while let Some((node, piped)) = open.pop() {
        match node.kind() {
            "command" => parts.commands.push(command(node, source, piped)),
            "declaration_command" | "unset_command" | "test_command" => {
                parts.commands.push(builtin(node, source, piped))
            }
            "file_redirect" => {
                let target = node.child_by_field_name("destination").map(|target| Word::read(text(target, source)));
                let written = text(node, source).trim_start_matches(|c: char| c.is_ascii_digit());
                if writes(written, target.as_ref()) {
                    parts.changes.push(written.to_owned());
                }
                parts.redirects.extend(target);
            }
            "herestring_redirect" => {
                let word = node.named_child(0).map(|child| Word::read(text(child, source)));
                parts.inputs.extend(word.map(|word| match word {
                    Word::Literal(text) => text,
                    // Not known: as a script this is the command `$…`, judged like any other.
                    Word::Variable(name) => format!("${name}"),
                    Word::Dynamic(source) => source,
                }));
            }
            "heredoc_body" => parts.inputs.push(text(node, source).to_owned()),
            "variable_assignment" => {
                parts.changes.push(text(node, source).to_owned());
                let part = |field| node.child_by_field_name(field).map(|child| text(child, source));
                if let (Some(name), Some(value)) = (part("name"), part("value")) {
                    parts.assignments.push((name.to_owned(), Word::read(value)));
                }
            }
            _ => {}
        }
        let feeds = matches!(node.kind(), "pipeline" | "heredoc_redirect");
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        // In a here-document the rest of the line is a child of the redirection: `cat <<X | sh`.
        let first_is_fed = node.kind() == "heredoc_redirect";
        // Last first, so that commands come out in source order.
        for (at, child) in children.into_iter().enumerate().rev() {
            open.push((child, piped || (feeds && (at > 0 || first_is_fed))));
        }
    }
    parts
}

/// Whether a redirection may change a file: not one that reads, copies a descriptor or ends in `/dev/null`.
fn writes(redirection: &str, target: Option<&Word>) -> bool {
    let reads = redirection.starts_with('<') && !redirection.starts_with("<>");
    let target = target.and_then(Word::literal).unwrap_or(redirection);
    let descriptor = redirection.contains(">&") && target.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    !reads && !descriptor && target != "/dev/null"
}

fn command(node: Node<'_>, source: &str, piped: bool) -> Found {
    let mut cursor = node.walk();
    let parts: Vec<Node<'_>> = node
        .named_children(&mut cursor)
        .filter(|child| {
            let kind = child.kind();
            kind != "variable_assignment" && kind != "comment" && !kind.ends_with("_redirect")
        })
        .collect();
    let words = parts.iter().map(|part| Word::read(text(*part, source))).collect();
    let span = match (parts.first(), parts.last()) {
        (Some(first), Some(last)) => source.get(first.start_byte()..last.end_byte()).unwrap_or_default(),
        _ => "",
    };
    Found { words, text: span.to_owned(), piped }
}

/// `export`, `unset`, `[[ … ]]`: commands with a grammar of their own.
fn builtin(node: Node<'_>, source: &str, piped: bool) -> Found {
    let whole = text(node, source);
    let name = whole.split_ascii_whitespace().next().unwrap_or_default();
    Found { words: vec![Word::Literal(name.to_owned())], text: whole.to_owned(), piped }
}

fn text<'s>(node: Node<'_>, source: &'s str) -> &'s str {
    source.get(node.byte_range()).unwrap_or_default()
}
