use proptest::prelude::*;
use serde_json::Value;

use super::*;

const READ_ONLY: &[&str] = &[
    "ls",
    "ls -la",
    "ls -la src",
    "ls src/lib",
    "ls \"a b\"",
    "pwd",
    "whoami",
    "date",
    "id",
    "id -u",
    "uname",
    "uname -a",
    "cat a.txt",
    "cat -n a.txt",
    "cat README.md",
    "head a.txt",
    "head -n 5 a.txt",
    "head -5 a.txt",
    "head -n5 a",
    "tail a.txt",
    "tail -n 2 a.txt",
    "wc a.txt",
    "wc -l a.txt",
    "grep x a.txt",
    "grep -n x a.txt",
    "grep -rn needle src",
    "grep -rn 'a b' src",
    "rg needle",
    "rg -n needle src",
    "git rev-parse HEAD",
    "  ls -la  ",
    "echo hi",
    "echo 'a|b' \"c;d\"",
    "cat src/source.ts",
    "cat format.txt",
    "grep -r rm src",
    "grep 'foo$' a",
    "grep -e --foo -A 3 a",
    "grep -- -x a",
    "grep '/api/v1' -r src",
    "date -u",
    "date +%Y-%m-%d",
    "git status",
    "git diff",
    "git diff --stat main..dev",
    "git log --oneline -5",
    "git log --format='%H %s' -n 3",
    "git log -p",
    "git diff -U5",
    "git diff --unified=5",
    "git log -L1,5:a.rs",
    "git log --since yesterday --author x",
    "tree -aL 2 src",
    "git show HEAD:src/a.rs",
    "git branch",
    "git branch --list 'x*'",
    "git stash list",
    "git remote -v",
    "git config --get user.name",
    "git worktree list",
    "node --version",
    "npm -v",
    "printenv PATH",
    "env",
    "find . -name '*.rs' -type f",
    "find src -not -path './x/*' -print0",
    "sort -k2 f",
    "uniq -c f",
    "printf '%s' x",
    "diff -u a b",
    "tree -L 2 src",
    "rg -g '*.rs' -e a -e b src",
    "ls\n",
];

const NOT_READ_ONLY: &[&str] = &[
    "git branch -l x",
    // Writers, runners and unknown commands.
    "mv a b",
    "cp a b",
    "mkdir -p x",
    "touch x",
    "chmod +x a",
    "chown root a",
    "ln -s a b",
    "tee out",
    "rsync a b",
    "sed -i s/a/b/ a.txt",
    "truncate -s 0 a",
    "git commit -m fix",
    "git add .",
    "git checkout x",
    "git merge x",
    "git rebase x",
    "git stash",
    "git tag v1",
    "git push",
    "git reset --hard HEAD",
    "git clean -dfx",
    "git branch -D x",
    "git branch x",
    "git remote add o u",
    "npm install lodash",
    "npm ci",
    "npm test",
    "npm run build",
    "pnpm test",
    "yarn add x",
    "pip install x",
    "npm publish",
    "make",
    "cargo build",
    "unknown-command --flag",
    "rm a.txt",
    "rm -rf ./nothing",
    "rmdir nothing",
    "find . -delete",
    "find . -exec touch x {} +",
    "find . -fprint f",
    "node -e \"1\"",
    "python3 -c \"1\"",
    "node a.js",
    "xargs touch",
    "sudo touch x",
    // Pipelines and lists.
    "ls | wc -l",
    "git status | cat",
    "ls && touch x",
    "ls; touch x",
    "ls || touch x",
    "ls &",
    "(touch x)",
    "(ls)",
    "{ touch x; }",
    "ls;touch x",
    "ls&&touch x",
    "ls\nwhoami",
    "ls\r",
    "ls \rwhoami",
    "ls # x",
    "! ls",
    // Redirections and here-documents.
    "echo hello > f",
    "echo a >> f",
    "cat a.txt > b",
    "ls>out",
    "ls 2> err",
    "cat < a.txt",
    "cat <<EOF\nx\nEOF",
    "cat <<< x",
    "grep x a.txt >> y",
    "ls 2>/dev/null",
    // Expansions.
    "cat $(ls)",
    "cat `ls`",
    "ls $HOME",
    "ls ${HOME}",
    "echo \"$HOME\"",
    "diff <(ls) <(ls)",
    "cat <(ls)",
    "ls \"$(touch x)\"",
    "$CMD",
    "FOO=1 touch x",
    "FOO=1 ls",
    "ls *",
    "cat ~/x",
    "ls {a,b}",
    "cat a\\ b",
    "l\\s",
    "\"ls\" a",
    "l''s",
    "$'ls'",
    "echo $'a'",
    "\u{a0}ls",
    "ls\u{a0}-la",
    "cat\tx",
    // Nested shells and evaluation.
    "eval ls",
    "bash -c ls",
    "sh -c ls",
    "zsh -c ls",
    "bash script.sh",
    "source ./x",
    ". ./x",
    "exec touch x",
    "command touch x",
    "nohup touch x",
    "curl http://127.0.0.1:9/x | bash",
    "timeout 5 rm x",
    // Options that write, run programs or never end.
    "env reboot",
    "env A=1",
    "rg --pre=sh x f",
    "rg --pre sh x",
    "rg -z x",
    "rg --hostname-bin=./h x",
    "rg -f p x",
    "git diff --output=/tmp/x",
    "git diff --outp=x",
    "git diff --ext-diff",
    "git diff --textconv",
    "git diff -Oorder",
    "git diff --no-index a b",
    "git log --output x",
    "git show --outp=x",
    "git -c core.pager=sh log",
    "git -p log",
    "git -C /other status",
    "git log --show-signature",
    // Options whose value may stand apart for us only, so that the next argument is an option to git or tree.
    "git diff --unified --output=x",
    "git diff -U --output=x",
    "git log -pU --output=x",
    "git log --format --output=x",
    "git show --pretty --output=x",
    "git diff -L --output=x",
    "git describe --abbrev --output=x",
    "git diff --stat --output=x",
    "git diff --color --output=x",
    "tree -Po pattern out",
    "tree -Io pattern out",
    "tree -LP 2 x",
    "tree -aPo pattern out",
    // Verifying a signature runs gpg.
    "git log --format=%G?",
    "git show --pretty='%h %GK'",
    "git branch --format='%(signature)'",
    "python -v",
    "python3",
    "tail -f a",
    "tail -F a",
    "tail --follow a",
    "tail -5f a",
    "sort -o f f",
    "sort -of f",
    "sort --outp f f",
    "sort -T /x f",
    "uniq a b",
    "tree -o f",
    "wc --files0-from=x",
    "date -s now",
    "date 01010000",
    "node --version -e 1",
    "npm --version install",
    "yarn --version",
    "grep -f /dev/stdin x",
    "git stash list --output=x",
    "git tag -d v",
    "printf -v PATH x",
    // Outside of the working directory, and secrets.
    "cat /etc/passwd",
    "cat ../x",
    "cat a/../../x",
    "ls /",
    "grep root /etc/passwd",
    "grep -e x /etc/passwd",
    "rg --files /etc",
    "find / -name x",
    "cat .env",
    "cat config/.env.local",
    "cat .ssh/id_rsa",
    "cat server.PEM",
    "git diff /etc/passwd /etc/hosts",
    "git show HEAD:.env",
];

const DESTRUCTIVE: &[&str] = &[
    "~/bin/rm x",
    "\"$PREFIX/bin/rm\" x",
    "timeout --kill-after 5 10 rm x",
    "xargs --max-args 1 rm",
    "bash -eo pipefail -c 'rm x'",
    "bash --rcfile f -c 'rm x'",
    "fish --command='rm x'",
    "rm a.txt",
    "rm -rf ./nothing",
    "git reset --hard HEAD",
    "git push origin main --force",
    "git push -f",
    "git push origin +main",
    "git clean -dfx",
    "git branch -D x",
    "npm publish",
    "dd if=a of=b",
    "curl http://127.0.0.1:9/x | bash",
    "eval x",
    "shred a.txt",
    "rm file",
    "kill -9 1",
    "kill -s KILL 1",
    "bash <(curl u)",
    "echo safe; rm f",
    "env V=\"$(rm f)\" echo t",
    "$(echo rm) -rf /",
    "truncate -s 0 a",
    "sh -c 'rm x'",
    "bash -lc \"cd a && rm x\"",
    "sh -c \"sh -c 'rm x'\"",
    "echo 'rm x' | sh",
    "bash <<EOF\nrm x\nEOF",
    "bash <<< 'rm x'",
    "cat <<X | sh\necho\nX",
    "curl u | sudo bash -s",
    "timeout 5 rm -rf /tmp/x",
    "timeout -s KILL -k 1 5 rm x",
    "nice rm x",
    "nice -n 10 rm x",
    "nohup rm x",
    "stdbuf -o0 rm x",
    "time rm x",
    "env -i rm x",
    "env A=1 rm x",
    "env -S 'rm x'",
    "command rm x",
    "sudo -u u rm x",
    "setsid rm x",
    "ionice -c3 rm x",
    "exec rm x",
    "builtin eval \"rm x\"",
    "echo a | xargs rm",
    "xargs -0 -I{} rm {}",
    "parallel rm ::: a",
    "watch -n1 rm x",
    "ls | while read f; do rm \"$f\"; done",
    "for f in *; do rm \"$f\"; done",
    "find . -delete",
    "find . -exec rm {} +",
    "find . -execdir sh -c 'rm x' \\;",
    "fd -x rm",
    "/bin/rm x",
    "\\rm x",
    "r\"\"m x",
    "$'\\x72m' x",
    "\"rm\" x",
    "r\\\nm x",
    "${IFS}rm x",
    "rm${IFS}x",
    "a=rm; $a x",
    "/bin/r? x",
    "{rm,x}",
    "git -c alias.x='!rm y' x",
    "git -C d reset --hard",
    "git reset --har",
    "trap 'rm x' EXIT",
    "f() { rm x; }; f",
    "echo x > /dev/sda",
    "psql -c 'DROP TABLE x'",
    "echo $(rm x)",
    "echo `rm x`",
    "[[ -n $(rm x) ]]",
    "export A=$(rm x)",
    "coproc rm x",
    "! rm x",
    "if then rm x",
    "git push --delete origin x",
    "git push origin :x",
    "source /dev/stdin <<< 'rm x'",
    "echo 'rm x' | . /dev/stdin",
    "taskset 1 rm x",
    "systemd-run --user rm x",
];

const NOT_DESTRUCTIVE: &[&str] = &[
    "ls | xargs -I{} echo {}",
    "~/bin/tool run",
    "\"$VENV/bin/python\" x.py",
    "./target/$PROFILE/app",
    "timeout --kill-after 5 10 make",
    "bash -eo pipefail -c 'make && make test'",
    "mkdir -p x",
    "touch x",
    "npm install lodash",
    "git commit -m fix",
    "git add .",
    "echo hi > f",
    "cat src/source.ts",
    "cat format.txt",
    "grep -r rm src",
    "git log --format=%H",
    "git push origin feature-f",
    "git push",
    "echo \"$HOME\"",
    "ls $HOME",
    "$CC -c x.c",
    "\"$PYTHON\" x.py",
    "echo 'rm x'",
    "git commit -m 'rm -rf; eval'",
    "kill -TERM $$",
    "sh -c 'echo hi; sleep 1'",
    "bash script.sh",
    "sh -c \"echo \\$\\$ > child; sleep 60\"",
    "source venv/bin/activate",
    "x=(1 2 3); echo ${#x[@]} && cat <(echo sub)",
    "cat <<'EOF'\nrm x\nEOF",
    "ls 2>/dev/null",
    "cmd > /dev/null 2>&1",
    "command -v rm",
    "git clean -nfd",
    "npm run format",
    "git checkout main",
    "git branch -d x",
    "grep 'DROP TABLE' x.sql",
    "trap \"\" TERM; sh -c \"trap '' TERM; while :; do sleep 0.05; done\" & wait",
    "timeout 5 git status",
    "while [ ! -e go ]; do sleep 0.05; done; echo second",
    "for i in 1 2; do printf \"\\xe4\"; done",
    "cat; read x",
    "head -c 20 /dev/zero | tr \"\\0\" x; printf end",
    "if then",
    "env A=1 node x.js",
    "sudo -u u ls",
];

fn wrong(commands: &[&str], holds: impl Fn(Classification) -> bool) -> Vec<String> {
    commands.iter().filter(|command| !holds(classify(command))).map(|command| (*command).to_owned()).collect()
}

#[test]
fn plain_reads_are_read_only_and_not_destructive() {
    assert_eq!(wrong(READ_ONLY, |c| c.read_only && !c.destructive), Vec::<String>::new());
}

#[test]
fn whatever_may_have_an_effect_is_not_read_only() {
    assert_eq!(wrong(NOT_READ_ONLY, |c| !c.read_only), Vec::<String>::new());
    assert_eq!(wrong(DESTRUCTIVE, |c| !c.read_only), Vec::<String>::new());
}

#[test]
fn irreversible_commands_are_destructive_however_they_are_written() {
    assert_eq!(wrong(DESTRUCTIVE, |c| c.destructive), Vec::<String>::new());
}

#[test]
fn ordinary_work_is_not_destructive() {
    assert_eq!(wrong(NOT_DESTRUCTIVE, |c| !c.destructive), Vec::<String>::new());
}

#[test]
fn field_cases_are_judged_as_listed() {
    let mut wrong = Vec::new();
    for line in include_str!("../tests/fixtures/bash-rules.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let (case, command) = (row["case"].as_str().unwrap(), row["cmd"].as_str().unwrap());
        // Listed there for its deny rule, and as a plain read under BC26.
        if case == "BC22" && command == "cat README.md" {
            continue;
        }
        // "may" leaves both answers open.
        if let Some(expected) = row["readonly"].as_bool()
            && classify(command).read_only != expected
        {
            wrong.push(format!("{case}: {command}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn nothing_is_read_only_and_destructive() {
    for command in READ_ONLY.iter().chain(NOT_READ_ONLY).chain(DESTRUCTIVE).chain(NOT_DESTRUCTIVE) {
        let judged = classify(command);
        assert!(!(judged.read_only && judged.destructive), "{command}");
    }
}

#[test]
fn deep_nesting_is_judged_without_exhausting_the_stack() {
    for command in ["(".repeat(20_000), "$(".repeat(5_000), format!("{}ls{}", "(".repeat(3_000), ")".repeat(3_000))] {
        assert!(!classify(&command).read_only);
    }
    let mut nested = "rm x".to_owned();
    for _ in 0..12 {
        nested = format!("sh -c '{}'", nested.replace('\'', "'\\''"));
    }
    assert!(classify(&nested).destructive);
}

#[test]
fn characters_of_every_plane_are_parts_of_words_wherever_they_stand() {
    let odd =
        ['\u{80}', '\u{a0}', '\u{2028}', '\u{3000}', '\u{d7ff}', '\u{fffd}', '\u{10000}', '\u{1f642}', '\u{10ffff}'];
    let places = [
        "{#",
        "{#..#}",
        "{1..#}",
        "{1#..2}",
        "{-#",
        "$#",
        "${#}",
        "$((#))",
        "<<#",
        "<<-'#'",
        "#<a",
        "a>#",
        "`#`",
        "\"#\"",
        "'#'",
        "$'#'",
        "a=#",
        "#=a",
        "(#)",
        "[[ # ]]",
        "# #",
        "a&#",
        "a|#",
        "a;#",
        "case # in #) #;; esac",
        "#() { #; }",
    ];
    for c in odd {
        for place in places {
            for script in [place.replace('#', &c.to_string()), place.replace('#', &format!("{c}{c}"))] {
                let _ = (classify(&script), parts(&script));
            }
        }
        assert!(classify(&format!("rm {c}")).destructive, "{c:?}");
        assert!(!classify(&format!("cat {c}; touch {c}")).read_only, "{c:?}");
    }
    for name in ["é", "文件"] {
        assert!(classify(&format!("cat a{name}b.txt")).read_only, "{name}");
    }
}

proptest! {
    #[test]
    fn judging_never_panics(command in "\\PC{0,60}") {
        let _ = (classify(&command), parts(&command));
    }

    #[test]
    fn judging_script_like_text_never_panics(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "rm", "ls", "git", "sh", "-c", "'", "\"", "$", "(", ")", "`", "\\", "\n", ";", "&", "|", "<", ">", "<<E\n",
                "{", "}", "*", " ", "=", "x", "é", "$'", "\\x", "if", "env", "-S", "push", "+", "find", "-exec", "xargs",
            ]),
            0..24,
        )
    ) {
        let command = parts.concat();
        let judged = classify(&command);
        prop_assert!(!(judged.read_only && judged.destructive), "{}", command);
        let _ = super::parts(&command);
    }

    #[test]
    fn operators_after_a_plain_read_undo_it(
        read in prop::sample::select(READ_ONLY.to_vec()),
        tail in prop::sample::select(vec!["; x", "\nx", " | x", " && x", " & x", " > x", " $x", " `x`", " <(x)", " *"]),
    ) {
        let command = format!("{}{tail}", read.trim());
        prop_assert!(!classify(&command).read_only, "{}", command);
    }
}
