//! What is proven to change nothing: commands, and the options of each that are known to be harmless.
//!
//! Options are read as the program itself would read them, so that a value cannot pose as an option or hide one.
//! Anything that runs a program, writes a file, never ends or reads a list of files is left out of the tables, and so
//! are abbreviated long options. Operands must stay below the working directory: what lies elsewhere is for the user
//! to allow.

use crate::tools::file::holds_secrets;

/// A command and what it may be given.
struct Entry {
    /// The command; for git with its subcommand.
    name: &'static str,
    /// Short options. A colon after one means that it takes a value, attached or as the next argument; a question mark,
    /// an attached one or none; a semicolon, always the next argument, in which case nothing may be attached.
    short: &'static str,
    /// Long options, apart by blanks: `name`, `name=` with a value, `name?` with an optional one after `=`.
    long: &'static str,
    /// Accepts `-5`.
    digits: bool,
    operands: Operands,
}

/// What operands mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// There are none.
    None,
    /// Text that names no file.
    Text,
    /// Files and directories.
    Paths,
    /// One file; a second one would be written to.
    OnePath,
    /// A pattern first, unless an option gave it; then files.
    Pattern,
    /// `+FORMAT`.
    Format,
}

const fn entry(name: &'static str, short: &'static str, long: &'static str, operands: Operands) -> Entry {
    Entry { name, short, long, digits: false, operands }
}

const fn counted(name: &'static str, short: &'static str, long: &'static str, operands: Operands) -> Entry {
    Entry { name, short, long, digits: true, operands }
}

const GREP_LONG: &str = "extended-regexp fixed-strings basic-regexp perl-regexp regexp= ignore-case no-ignore-case invert- \
         match word-regexp line-regexp count color? colour? files-without-match files-with-matches max-count= \
         only-matching quiet silent no-messages byte-offset with-filename no-filename label= line-number \
         initial-tab null after-context= before-context= context= text binary-files= exclude= exclude-dir= \
         include= recursive dereference-recursive line-buffered null-data version help";

const GREP_SHORT: &str = "abcEFGhHiIlLnoPqrRsTUvVwxyzZA:B:C:m:e:d:D:";

/// `git log`, `git show` and `git diff` share their options. Left out: everything that writes a file (`--output`),
/// runs a program (`--ext-diff`, `--textconv`, `--show-signature`), reads one (`-O`) or leaves the repository
/// (`--no-index`). An option that git takes for one without a value must not hide the next argument here.
const GIT_DIFF_LONG: &str = "oneline graph decorate? no-decorate all branches? tags? remotes? stat? shortstat numstat summary \
         name-only name-status no-merges merges first-parent reverse abbrev? abbrev-commit no-abbrev-commit \
         pretty? format? since= after= until= before= author= committer= grep= max-count= skip= follow full- \
         history date= topo-order date-order author-date-order patch no-patch unified? raw patch-with-stat \
         minimal patience histogram diff-algorithm= word-diff? word-diff-regex= color? no-color color-words? \
         color-moved? ignore-space-change ignore-all-space ignore-space-at-eol ignore-blank-lines function- \
         context diff-filter= find-renames? find-copies? no-renames text no-ext-diff no-textconv cached \
         staged merge-base quiet exit-code relative? submodule? check dirstat? cherry-pick left-right source \
         no-prefix compact-summary pickaxe-regex pickaxe-all invert-grep all-match regexp-ignore-case \
         extended-regexp fixed-strings perl-regexp";
const GIT_DIFF_SHORT: &str = "abciEFgmpPRsuwzMCn:S:G:U?";
const GIT_LOG_SHORT: &str = "abciEFgmpPRsuwzMCn:S:G:U?L:";

use Operands::{Format, None as Nothing, OnePath, Paths, Pattern, Text};

const COMMANDS: &[Entry] = &[
    entry(
        "ls",
        "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        "all almost-all author escape block-size= ignore-backups color? directory classify? file-type format= \
         full-time group-directories-first no-group human-readable si dereference hide= indicator-style= \
         inode ignore= kibibytes literal numeric-uid-gid quote-name quoting-style= reverse recursive size \
         sort= time= time-style= width= zero help version",
        Paths,
    ),
    entry("pwd", "LP", "logical physical help version", Nothing),
    entry("whoami", "", "help version", Nothing),
    entry("true", "", "", Text),
    entry("false", "", "", Text),
    entry("date", "uRI", "utc universal rfc-email iso-8601? rfc-3339= date= help version", Format),
    entry("id", "aGgnruzZ", "context group groups name real user zero help version", Text),
    entry(
        "uname",
        "asnrvmpio",
        "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform \
         operating-system help version",
        Nothing,
    ),
    entry(
        "cat",
        "AbeEnstTuv",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
        Paths,
    ),
    counted("head", "qvzn:c:", "bytes= lines= quiet silent verbose zero-terminated", Paths),
    // Not `-f`, `-F`, `--follow`, `--retry`: those never end.
    counted("tail", "qvzrn:c:", "bytes= lines= quiet silent verbose zero-terminated", Paths),
    entry("wc", "clmwL", "bytes chars lines max-line-length words", Paths),
    counted("grep", GREP_SHORT, GREP_LONG, Pattern),
    counted("egrep", GREP_SHORT, GREP_LONG, Pattern),
    counted("fgrep", GREP_SHORT, GREP_LONG, Pattern),
    // Not `--pre`, `--hostname-bin`, `-z`: those run programs.
    entry(
        "rg",
        "abcFhHiIlLnNopPqsSuUvVwx0.A:B:C:g:t:T:m:e:j:M:d:E:r:",
        "after-context= before-context= context= glob= iglob= type= type-not= max-count= regexp= threads= \
         max-columns= max-depth= encoding= replace= sort= sortr= color= count count-matches fixed-strings no- \
         filename with-filename ignore-case smart-case case-sensitive files-with-matches files-without-match \
         files line-number no-line-number only-matching pcre2 quiet multiline multiline-dotall invert-match \
         word-regexp line-regexp null hidden no-ignore no-ignore-vcs no-heading heading column vimgrep json \
         stats trim text type-list no-messages no-config passthru version",
        Pattern,
    ),
    entry("basename", "azs:", "multiple suffix= zero", Text),
    entry("dirname", "z", "zero", Text),
    entry("realpath", "eLmPqsz", "canonicalize-existing canonicalize-missing no-symlinks zero", Paths),
    entry("stat", "Ltc:", "dereference format= printf= terse", Paths),
    entry("file", "bihL", "brief mime mime-type mime-encoding dereference no-dereference", Paths),
    entry(
        "du",
        "abchHklLmsSx0d:t:",
        "all apparent-size bytes total max-depth= human-readable summarize si threshold=",
        Paths,
    ),
    entry("df", "ahHiklmPTt:x:", "all human-readable inodes si total print-type", Paths),
    entry(
        "diff",
        "abBcdeiEnNpqrstTuvwyU:C:W:x:F:",
        "brief unified? context? side-by-side report-identical-files recursive new-file ignore-case ignore- \
         all-space ignore-space-change ignore-blank-lines color? exclude= text width= minimal",
        Paths,
    ),
    // Not `-o`, `-T`, `--compress-program`, `--files0-from`.
    entry(
        "sort",
        "bcCdfghiMmnrRsuVzk:t:",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort month- \
         sort numeric-sort reverse version-sort check? key= field-separator= stable unique zero-terminated",
        Paths,
    ),
    entry("uniq", "cdDuizf:s:w:", "count repeated unique ignore-case skip-fields= skip-chars= check-chars=", OnePath),
    entry("cut", "nszb:c:d:f:", "bytes= characters= delimiter= fields= only-delimited", Paths),
    entry("which", "a", "all", Text),
    entry("printenv", "0", "null", Text),
    entry("env", "", "", Nothing),
    entry("md5sum", "btz", "binary text tag", Paths),
    entry("sha1sum", "btz", "binary text tag", Paths),
    entry("sha256sum", "btz", "binary text tag", Paths),
    // Not `-o`, `-R`.
    entry("tree", "adfpsughDnCNFrtUxJXL;P;I;", "noreport dirsfirst gitignore du prune", Paths),
];

const GIT: &[Entry] = &[
    entry(
        "status",
        "sbuzv",
        "short branch show-stash porcelain? long verbose untracked-files? ignored? ignore-submodules? column? \
         no-column ahead-behind no-ahead-behind renames no-renames null",
        Paths,
    ),
    counted("log", GIT_LOG_SHORT, GIT_DIFF_LONG, Paths),
    counted("show", GIT_LOG_SHORT, GIT_DIFF_LONG, Paths),
    counted("diff", GIT_DIFF_SHORT, GIT_DIFF_LONG, Paths),
    entry(
        "rev-parse",
        "q",
        "show-toplevel git-dir absolute-git-dir git-common-dir abbrev-ref? short? verify quiet is-inside- \
         work-tree is-inside-git-dir is-bare-repository is-shallow-repository show-prefix show-cdup symbolic- \
         full-name symbolic all branches? tags? remotes?",
        Paths,
    ),
    // Operands would create a branch.
    entry(
        "branch",
        "arvl",
        "all remotes list show-current verbose merged? no-merged? contains? sort= format= no-color color? \
         column? no-column",
        Nothing,
    ),
    entry("remote", "v", "verbose", Nothing),
    entry("describe", "", "tags all always long dirty? abbrev? exact-match match=", Paths),
    entry("blame", "wlcsefntL:", "porcelain line-porcelain show-name show-number show-email", Paths),
    entry("ls-files", "cdmoskuvtz", "cached others modified deleted exclude-standard stage unmerged full-name", Paths),
    entry("ls-tree", "rdtlz", "name-only name-status full-name full-tree long", Paths),
    entry("cat-file", "ptse", "", Paths),
];

/// Forms of git that are harmless only as a whole; what follows must be plain text.
const GIT_FORMS: &[&[&str]] = &[
    &["stash", "list"],
    &["worktree", "list"],
    &["worktree", "list", "--porcelain"],
    &["tag"],
    &["tag", "-l"],
    &["tag", "--list"],
    &["reflog"],
    &["--version"],
];

/// Programs that say their version; only when that is all they are asked for.
const VERSIONS: &[(&str, &[&str])] = &[
    ("node", &["--version", "-v"]),
    ("npm", &["--version", "-v"]),
    ("python", &["--version", "-V"]),
    ("python3", &["--version", "-V"]),
    ("rg", &["--version", "-V"]),
];

/// Tests of `find` with a value.
const FIND_VALUED: &str = "-name -iname -path -ipath -wholename -type -maxdepth -mindepth -size -mtime -mmin -atime \
     -amin -ctime -cmin -perm -user -group -regex -iregex -regextype";
/// Tests and operators of `find` without a value. Actions other than printing are left out.
const FIND_BARE: &str = "! ( ) -empty -print -print0 -not -and -or -a -o -prune -true -false -xdev -mount -depth \
     -readable -writable -executable -nouser -nogroup";

/// Whether a command of these words is proven to change nothing.
pub(super) fn is_read_only(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((name, args)) = words.split_first() else { return false };
    if VERSIONS.iter().any(|(program, flags)| program == name && matches!(args, [flag] if flags.contains(flag))) {
        return true;
    }
    match *name {
        // The shell's own: no option of it does anything but format.
        "echo" => true,
        "printf" => args.first().is_some_and(|format| !format.starts_with('-')),
        "git" => git(args),
        "find" => find(args),
        _ => COMMANDS.iter().any(|entry| entry.name == *name && entry.accepts(args)),
    }
}

fn git(args: &[&str]) -> bool {
    // Options before the subcommand redirect or configure git, so the first word must be the subcommand.
    let Some((subcommand, rest)) = args.split_first() else { return false };
    // Placeholders that verify a signature run gpg.
    if args.iter().any(|arg| arg.contains("%G") || arg.contains("(signature")) {
        return false;
    }
    let known = GIT.iter().any(|entry| entry.name == *subcommand && entry.accepts(rest));
    known
        || GIT_FORMS.contains(&args)
        || match args {
            ["branch", "--list", patterns @ ..] | ["tag", "--list" | "-l", patterns @ ..] => {
                patterns.iter().all(|pattern| !pattern.starts_with('-'))
            }
            ["remote", "get-url", name] | ["config", "--get" | "--get-all", name] => !name.starts_with('-'),
            _ => false,
        }
}

fn find(args: &[&str]) -> bool {
    let begins_test = |arg: &&str| arg.starts_with(['-', '!', '(', ')']);
    let options = args.iter().take_while(|arg| matches!(**arg, "-H" | "-L" | "-P")).count();
    let paths = args[options..].iter().take_while(|arg| !begins_test(arg)).count();
    if !args[options..options + paths].iter().all(|path| stays_below(path)) {
        return false;
    }
    let mut rest = args[options + paths..].iter();
    let listed = |list: &str, arg: &str| list.split_ascii_whitespace().any(|known| known == arg);
    while let Some(arg) = rest.next() {
        let understood = listed(FIND_BARE, arg) || (listed(FIND_VALUED, arg) && rest.next().is_some());
        if !understood {
            return false;
        }
    }
    true
}

impl Entry {
    fn accepts(&self, args: &[&str]) -> bool {
        let mut operands = Vec::new();
        let mut pattern_given = false;
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            at += 1;
            if *arg == "--" {
                operands.extend_from_slice(&args[at..]);
                break;
            }
            let takes_next = if let Some(long) = arg.strip_prefix("--") {
                pattern_given |= matches!(long.split('=').next(), Some("regexp" | "files" | "type-list"));
                self.long(long)
            } else if arg.len() > 1 && arg.starts_with('-') {
                let taken = self.shorts(&arg[1..]);
                pattern_given |= taken.is_some_and(|(_, pattern)| pattern);
                taken.map(|(takes_next, _)| takes_next)
            } else {
                operands.push(*arg);
                Some(false)
            };
            match takes_next {
                Some(false) => {}
                Some(true) if at < args.len() => at += 1,
                _ => return false,
            }
        }
        self.fits(&operands, pattern_given)
    }

    /// `Some(true)`: the next argument is its value. `None`: not a known option.
    fn long(&self, option: &str) -> Option<bool> {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        self.long.split_ascii_whitespace().find_map(|known| match (known.strip_suffix('='), known.strip_suffix('?')) {
            (Some(known), _) if known == name => Some(value.is_none()),
            (_, Some(known)) if known == name => Some(false),
            (None, None) if known == name && value.is_none() => Some(false),
            _ => None,
        })
    }

    /// A cluster of short options: whether the next argument is a value, and whether `-e` gave a pattern.
    fn shorts(&self, cluster: &str) -> Option<(bool, bool)> {
        if self.digits && cluster.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some((false, false));
        }
        for (at, option) in cluster.char_indices() {
            let known = self.short.find(option).filter(|_| !matches!(option, ':' | '?' | ';'))?;
            let attached = &cluster[at + option.len_utf8()..];
            match self.short.as_bytes().get(known + option.len_utf8()) {
                Some(b':') => return Some((attached.is_empty(), option == 'e')),
                Some(b'?') => return Some((false, false)),
                // The rest of the cluster would be options again, with values of their own.
                Some(b';') => return attached.is_empty().then_some((true, false)),
                _ => {}
            }
        }
        Some((false, false))
    }

    fn fits(&self, operands: &[&str], pattern_given: bool) -> bool {
        let below = |paths: &[&str]| paths.iter().all(|path| stays_below(path));
        match self.operands {
            Nothing => operands.is_empty(),
            Text => true,
            Paths => below(operands),
            OnePath => operands.len() <= 1 && below(operands),
            Pattern if pattern_given => below(operands),
            Pattern => operands.split_first().is_some_and(|(_, paths)| below(paths)),
            Format => operands.iter().all(|operand| operand.starts_with('+')),
        }
    }
}

/// Folders of secrets, whatever their files are called.
const SECRET_FOLDERS: [&str; 4] = [".gnupg", ".ssh", ".aws", ".kube"];

/// Whether a path stays below the working directory and names no usual place of secrets.
fn stays_below(path: &str) -> bool {
    let outside = path.starts_with(['/', '~', '\\']) || path.get(1..2) == Some(":");
    // A colon stands between a revision and its path.
    let names = path.to_lowercase().replace(['\\', ':'], "/");
    let secret = holds_secrets(&names);
    let mut segments = names.split('/');
    !outside && !secret && !segments.any(|segment| segment == ".." || SECRET_FOLDERS.contains(&segment))
}
