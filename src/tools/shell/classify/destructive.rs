//! What can lose something for good.

use std::sync::LazyLock;

use regex::Regex;

use super::script::{Found, Script};
use super::words::{Word, is_name};

/// Scripts inside of scripts are followed this deep; deeper ones count as destructive.
const MAX_DEPTH: usize = 8;

/// Programs that remove, overwrite or end things whatever their arguments are.
const ALWAYS: [&str; 24] = [
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "srm",
    "dd",
    "truncate",
    "mkfs",
    "mke2fs",
    "mkswap",
    "fdisk",
    "sfdisk",
    "gdisk",
    "parted",
    "wipefs",
    "blkdiscard",
    "pkill",
    "killall",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "format",
    "eval",
];
pub(super) const SHELLS: [&str; 8] = ["bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "mksh"];
const SQL_CLIENTS: [&str; 8] =
    ["psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "mongosh", "duckdb", "clickhouse-client"];
/// Programs that upload what cannot be taken back.
const PUBLISHERS: [&str; 5] = ["npm", "pnpm", "yarn", "bun", "cargo"];
/// Devices that swallow or show what is written to them.
const HARMLESS_DEVICES: [&str; 8] = ["null", "zero", "full", "stdout", "stderr", "stdin", "tty", "random"];

/// Programs that run the command in their arguments: name, options with a value, operands before the command.
pub(super) const WRAPPERS: [(&str, &str, usize); 21] = [
    ("sudo", "ugpCcDhRrTtU", 0),
    ("doas", "uC", 0),
    ("env", "uCS", 0),
    ("nice", "n", 0),
    ("ionice", "cnpPu", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("stdbuf", "ioe", 0),
    ("timeout", "ks", 1),
    ("time", "fo", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("exec", "a", 0),
    ("coproc", "", 0),
    ("xargs", "aEILnPsd", 0),
    ("watch", "nq", 0),
    ("busybox", "", 0),
    ("toybox", "", 0),
    ("chroot", "", 1),
    ("unshare", "", 0),
    ("caffeinate", "tw", 0),
];
/// Wrappers whose options are too many to know: every argument may begin the command.
pub(super) const LOOSE_WRAPPERS: [&str; 19] = [
    "parallel",
    "flock",
    "strace",
    "script",
    "ltrace",
    "setpriv",
    "taskset",
    "chrt",
    "numactl",
    "prlimit",
    "choom",
    "pkexec",
    "nsenter",
    "systemd-run",
    "bwrap",
    "firejail",
    "unbuffer",
    "xvfb-run",
    "entr",
];

/// Words that stand before a command without being one.
const KEYWORDS: [&str; 10] = ["!", "if", "then", "elif", "else", "while", "until", "do", "time", "function"];

static DROPS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)\b(drop\s+(table|database|schema)|truncate\s+table)\b").ok());

/// Whether any part of a script may lose something for good.
pub(super) fn is_destructive(script: &Script<'_>) -> bool {
    judge(script, 0)
}

fn judge_text(source: &str, depth: usize) -> bool {
    depth >= MAX_DEPTH || judge(&Script::parse(source), depth)
}

fn judge(script: &Script<'_>, depth: usize) -> bool {
    let scope = Scope { script, depth };
    // The grammar sees two words where bash joins the lines; judged as well, never instead.
    let joined = script.source().contains("\\\n").then(|| script.source().replace("\\\n", ""));
    script.commands().iter().any(|found| scope.found(found))
        || script.redirects().iter().any(writes_device)
        || drops_tables(script)
        || (script.has_errors() && scope.any_segment())
        || joined.is_some_and(|joined| judge_text(&joined, depth + 1))
}

fn writes_device(target: &Word) -> bool {
    let Some(device) = target.literal().and_then(|target| target.strip_prefix("/dev/")) else { return false };
    let harmless = ["fd/", "pts/", "tcp/", "udp/", "shm/", "tty"].iter().any(|prefix| device.starts_with(prefix));
    !harmless && !HARMLESS_DEVICES.contains(&device)
}

fn drops_tables(script: &Script<'_>) -> bool {
    let uses_client = script
        .commands()
        .iter()
        .flat_map(|found| &found.words)
        .any(|word| word.literal().is_some_and(|word| SQL_CLIENTS.contains(&base_name(word))));
    uses_client && DROPS.as_ref().is_none_or(|drops| drops.is_match(script.source()))
}

pub(super) fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

struct Scope<'s> {
    script: &'s Script<'s>,
    depth: usize,
}

impl Scope<'_> {
    fn found(&self, found: &Found) -> bool {
        self.words(&found.words, found.piped)
    }

    /// A script the grammar does not understand: every stretch between operators may be a command.
    fn any_segment(&self) -> bool {
        self.script.source().split(['\n', ';', '&', '|', '(', ')', '{', '}', '`', ',']).any(|segment| {
            let words = segment.split_ascii_whitespace().skip_while(|word| KEYWORDS.contains(word));
            let words: Vec<Word> = words.map(Word::read).collect();
            !matches!(words.first(), None | Some(Word::Dynamic(_))) && self.words(&words, true)
        })
    }

    fn words(&self, words: &[Word], piped: bool) -> bool {
        let Some((name, args)) = words.split_first() else { return false };
        match name {
            Word::Literal(name) => self.program(base_name(name), args, piped),
            // Tracked as far as the script assigns it; a variable from outside is the user's own.
            Word::Variable(name) => self.script.values(name).any(|value| match value {
                Word::Literal(text) => {
                    let mut all: Vec<Word> =
                        text.split_ascii_whitespace().map(|word| Word::Literal(word.to_owned())).collect();
                    all.extend_from_slice(args);
                    // One step: a variable that names a variable is not a literal.
                    self.words(&all, piped)
                }
                Word::Variable(_) => false,
                Word::Dynamic(_) => true,
            }),
            // Otherwise what runs cannot be known.
            Word::Dynamic(_) => name.file_name().is_none_or(|name| self.program(base_name(&name), args, piped)),
        }
    }

    fn program(&self, name: &str, args: &[Word], piped: bool) -> bool {
        if ALWAYS.contains(&name) || name.starts_with("mkfs.") {
            return true;
        }
        if SHELLS.contains(&name) {
            return self.shell(args, piped);
        }
        if let Some((_, valued, operands)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) {
            return self.wrapped(name, args, valued, *operands, piped);
        }
        if LOOSE_WRAPPERS.contains(&name) {
            return self.anywhere(args, piped);
        }
        let has = |wanted: &[&str]| args.iter().filter_map(Word::literal).any(|arg| wanted.contains(&arg));
        match name {
            "git" => self.git(args),
            "kill" => has(&["-9", "-KILL", "-SIGKILL", "KILL", "SIGKILL", "9"]),
            "source" | "." => match args.first() {
                Some(Word::Literal(file)) => file == "/dev/stdin" && self.standard_input(piped),
                Some(Word::Dynamic(source)) => source.contains("<("),
                Some(Word::Variable(_)) | None => false,
            },
            "trap" => args.first().and_then(Word::literal).is_some_and(|body| judge_text(body, self.depth + 1)),
            "find" => has(&["-delete"]) || self.after(args, &["-exec", "-execdir", "-ok", "-okdir"], piped),
            "fd" | "fdfind" => self.after(args, &["-x", "--exec", "-X", "--exec-batch"], piped),
            _ if PUBLISHERS.contains(&name) => {
                let operand = args.iter().filter_map(Word::literal).find(|arg| !arg.starts_with('-'));
                matches!(operand, Some("publish" | "unpublish"))
            }
            _ => false,
        }
    }

    /// Any argument may begin the command.
    fn anywhere(&self, args: &[Word], piped: bool) -> bool {
        (0..args.len()).any(|from| args[from].literal().is_some() && self.words(&args[from..], piped))
    }

    /// The commands that follow certain options.
    fn after(&self, args: &[Word], options: &[&str], piped: bool) -> bool {
        let starts = args.iter().enumerate().filter(|(_, arg)| arg.literal().is_some_and(|arg| options.contains(&arg)));
        starts.map(|(at, _)| &args[at + 1..]).any(|rest| self.words(rest, piped))
    }

    fn wrapped(&self, name: &str, args: &[Word], valued: &str, operands: usize, piped: bool) -> bool {
        let mut skip = operands;
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            match arg.literal() {
                // `command -v rm` looks a program up.
                Some("-v" | "-V") if name == "command" => return false,
                Some("--") => {}
                Some(option) if option.starts_with("--") => {
                    if let Some(script) = option.strip_prefix("--split-string=") {
                        return judge_text(script, self.depth + 1);
                    }
                    // Its value may stand apart, and then the command begins later: looked for everywhere, which at
                    // worst asks for a confirmation too many.
                    if !option.contains('=') && self.anywhere(&args[at + 1..], piped) {
                        return true;
                    }
                }
                Some(option) if option.len() > 1 && option.starts_with('-') => {
                    if let Some(value_at) = option[1..].find(|c| valued.contains(c)) {
                        let value = &option[1 + value_at + 1..];
                        let apart = value.is_empty();
                        if name == "env" && option.as_bytes().get(value_at + 1) == Some(&b'S') {
                            let next = args.get(at + 1).and_then(Word::literal);
                            let script = if apart { next } else { Some(value) };
                            return script.is_none_or(|script| judge_text(script, self.depth + 1));
                        }
                        at += usize::from(apart);
                    }
                }
                Some(word) if name == "env" && word.split_once('=').is_some_and(|(name, _)| is_name(name)) => {}
                _ if skip > 0 => skip -= 1,
                Some(script) if name == "watch" => {
                    let rest: Vec<&str> = args[at + 1..].iter().filter_map(Word::literal).collect();
                    return judge_text(&format!("{script} {}", rest.join(" ")), self.depth + 1);
                }
                _ => return self.words(&args[at..], piped),
            }
            at += 1;
        }
        false
    }

    /// A shell: what matters is the script it is given.
    fn shell(&self, args: &[Word], piped: bool) -> bool {
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            match arg.literal() {
                Some("-" | "--") => {
                    at += 1;
                    break;
                }
                Some("--rcfile" | "--init-file") => at += 2,
                Some(option) if option.starts_with("--") => {
                    if option.strip_prefix("--command=").is_some_and(|script| judge_text(script, self.depth + 1)) {
                        return true;
                    }
                    at += 1;
                }
                Some(option) if option.len() > 1 && option.starts_with(['-', '+']) => {
                    if option.starts_with('-') && option.contains('c') {
                        let rest = args[at + 1..].iter().find(|arg| arg.literal().is_none_or(|a| !a.starts_with('-')));
                        return match rest {
                            Some(Word::Literal(script)) => judge_text(script, self.depth + 1),
                            Some(_) => true,
                            None => false,
                        };
                    }
                    if option.contains('s') {
                        return self.standard_input(piped);
                    }
                    at += if option.ends_with(['o', 'O']) { 2 } else { 1 };
                }
                _ => break,
            }
        }
        match args.get(at) {
            // The contents of script files are not read, those of generated ones cannot be.
            Some(Word::Literal(file)) => file == "/dev/stdin" && self.standard_input(piped),
            Some(Word::Variable(_)) => false,
            Some(Word::Dynamic(source)) => source.contains(['(', '`']),
            None => self.standard_input(piped),
        }
    }

    fn standard_input(&self, piped: bool) -> bool {
        piped || self.script.inputs().iter().any(|input| judge_text(input, self.depth + 1))
    }

    fn git(&self, args: &[Word]) -> bool {
        let mut at = 0;
        let subcommand = loop {
            match args.get(at).map(Word::literal) {
                Some(Some(
                    "-c" | "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" | "--exec-path",
                )) => {
                    // An alias that begins with `!` is a script.
                    let value = args.get(at + 1).and_then(Word::literal).and_then(|value| value.split_once("=!"));
                    if value.is_some_and(|(_, script)| judge_text(script, self.depth + 1)) {
                        return true;
                    }
                    at += 2;
                }
                Some(Some(option)) if option.starts_with('-') => at += 1,
                Some(Some(name)) => break name,
                Some(None) | None => return false,
            }
        };
        let rest: Vec<&str> = args[at + 1..].iter().filter_map(Word::literal).collect();
        // Git takes unambiguous beginnings of its options.
        let long = |names: &[&str]| {
            let mut keys = rest.iter().map(|arg| arg.split('=').next().unwrap_or(arg)).filter(|key| key.len() >= 4);
            keys.any(|key| names.iter().any(|name| name.starts_with(key)))
        };
        let short =
            |flag: char| rest.iter().any(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.contains(flag));
        let forced = || short('f') || long(&["--force"]);
        match subcommand {
            "reset" => long(&["--hard"]),
            "push" => {
                let refspec = |arg: &&str| arg.starts_with('+') || (arg.starts_with(':') && arg.len() > 1);
                forced()
                    || short('d')
                    || long(&["--force-with-lease", "--delete", "--mirror", "--prune"])
                    || rest.iter().any(refspec)
            }
            "clean" => forced() && !(short('n') || long(&["--dry-run"])),
            "branch" => short('D') || (forced() && (short('d') || long(&["--delete"]))),
            "checkout" | "switch" => forced() || long(&["--discard-changes"]),
            "stash" => matches!(rest.first(), Some(&("drop" | "clear"))),
            "reflog" => matches!(rest.first(), Some(&("expire" | "delete"))),
            "filter-branch" | "filter-repo" => true,
            _ => false,
        }
    }
}
