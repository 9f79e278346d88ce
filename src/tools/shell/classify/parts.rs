//! What a command consists of, for permission rules: each of its parts must be allowed, and none denied.

use super::destructive::{LOOSE_WRAPPERS, SHELLS, WRAPPERS, base_name};
use super::script::{Found, Script};
use super::words::Word;

/// Scripts inside of scripts are followed this deep; deeper ones are not understood.
const MAX_DEPTH: usize = 8;
/// Programs that take a script as an argument, besides shells.
const EVALUATORS: [&str; 6] = ["eval", "trap", "env", "watch", "parallel", "script"];
/// Options after which another command stands.
const RUNNING_OPTIONS: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// The parts of a command, in no particular order; none when it is one plain command.
///
/// - Simple commands, however deeply nested, without the assignments before them.
/// - Assignments (`A=1`) and redirections to files (`> out`): they change what a command does.
/// - Where a command runs another one (`sudo`, `xargs`, `find -exec`, `sh -c`), every stretch of words that may be the
///   inner one, and an empty part: where it begins depends on options that are not known here.
/// - An empty part as well for what was not understood.
pub(in crate::tools::shell) fn parts(command: &str) -> Vec<String> {
    let mut parts = Vec::new();
    collect(command, 0, &mut parts);
    if parts.iter().all(|part| part == command.trim()) {
        return Vec::new();
    }
    parts.sort_unstable();
    parts.dedup();
    parts
}

fn collect(source: &str, depth: usize, parts: &mut Vec<String>) {
    if depth >= MAX_DEPTH {
        parts.push(String::new());
        return;
    }
    // The grammar sees two words where bash joins the lines.
    let joined = source.replace("\\\n", "");
    let script = Script::parse(&joined);
    if script.has_errors() {
        parts.push(String::new());
        let segments = joined.split(['\n', ';', '&', '|', '(', ')', '{', '}', '`']);
        parts.extend(segments.map(|segment| segment.trim().to_owned()));
    }
    parts.extend(script.commands().iter().map(|found| found.text.clone()));
    parts.extend(script.changes().iter().cloned());
    for found in script.commands() {
        of_command(found, depth, parts);
    }
    for input in script.inputs() {
        if script.commands().iter().any(reads_a_script) {
            collect(input, depth + 1, parts);
        }
    }
}

fn reads_a_script(found: &Found) -> bool {
    found
        .words
        .iter()
        .filter_map(Word::literal)
        .any(|word| SHELLS.contains(&base_name(word)) || matches!(word, "source" | "."))
}

fn of_command(found: &Found, depth: usize, parts: &mut Vec<String>) {
    let Some((name, args)) = found.words.split_first() else { return };
    let Some(program) = name.literal() else {
        // What runs is only known when it runs.
        parts.push(String::new());
        return;
    };
    // Quotes, backslashes and directories do not hide a program from a rule.
    let plain = rendered(&found.words);
    if !found.text.starts_with(program) {
        parts.push(plain);
    }
    let name = base_name(program);
    let has_option = || args.iter().filter_map(Word::literal).any(|arg| RUNNING_OPTIONS.contains(&arg));
    let runs_another = SHELLS.contains(&name)
        || EVALUATORS.contains(&name)
        || LOOSE_WRAPPERS.contains(&name)
        || WRAPPERS.iter().any(|(wrapper, ..)| *wrapper == name)
        || has_option();
    if !runs_another {
        return;
    }
    parts.push(String::new());
    for (at, arg) in args.iter().enumerate() {
        parts.push(rendered(&args[at..]));
        if let Some(script) = arg.literal().filter(|text| text.contains(char::is_whitespace) || text.contains(';')) {
            collect(script, depth + 1, parts);
        }
    }
}

fn rendered(words: &[Word]) -> String {
    let texts: Vec<String> = words
        .iter()
        .map(|word| match word {
            Word::Literal(text) | Word::Dynamic(text) => text.clone(),
            Word::Variable(name) => format!("${name}"),
        })
        .collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn a_plain_command_has_no_parts() {
        for command in ["git log", " git log ", "git commit -m 'a; b'", "echo \"$HOME\""] {
            assert_eq!(parts(command), Vec::<String>::new(), "{command}");
        }
        for command in ["ls 2>/dev/null", "ls 2>&1", "ls < a", "ls # comment"] {
            assert_eq!(parts(command), ["ls"], "{command}");
        }
    }

    #[test]
    fn whatever_a_command_runs_or_changes_is_a_part() {
        for (command, expected) in [
            ("git status && rm -rf x", "rm -rf x"),
            ("git status |& rm x", "rm x"),
            ("git status \n\nrm x", "rm x"),
            ("echo $(rm x)", "rm x"),
            ("echo \"a $(rm x) b\"", "rm x"),
            ("echo <(rm x)", "rm x"),
            ("echo ${a:=$(rm x)}", "rm x"),
            ("[[ -n $(rm x) ]]", "rm x"),
            ("AWS_PROFILE=prod aws ec2", "aws ec2"),
            ("PATH=/evil git log", "PATH=/evil"),
            ("x=1; ls", "x=1"),
            ("echo x > f", "> f"),
            ("echo x 2>> f", ">> f"),
            ("echo x &> f", "&> f"),
            ("\\rm x", "rm x"),
            ("'rm' x", "rm x"),
            ("r\\\nm x", "rm x"),
            ("timeout -s KILL 5 rm x", "rm x"),
            ("sudo -u u rm x", "rm x"),
            ("sudo ls", ""),
            ("sudo ls", "sudo ls"),
            ("echo a | xargs rm", "rm"),
            ("find . -exec rm {} +", "rm {} +"),
            ("sh -c 'ls; rm x'", "rm x"),
            ("env -S 'rm x'", "rm x"),
            ("eval \"rm x\"", "rm x"),
            ("bash <<EOF\nrm x\nEOF", "rm x"),
            ("bash <<< 'rm x'", "rm x"),
            ("$CMD x", ""),
            ("git log (", ""),
            ("(rm x", "rm x"),
        ] {
            assert!(parts(command).iter().any(|part| part == expected), "{command}: {:?}", parts(command));
        }
    }

    #[test]
    fn the_body_of_a_quoted_here_document_is_data() {
        assert_eq!(parts("cat > notes.md <<'EOF'\n$(x)\nEOF\n"), ["> notes.md", "cat"]);
    }
}
