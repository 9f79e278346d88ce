use super::*;
use crate::contract::ToolKind;
use crate::permissions::{Place, ToolMeta};

fn request(tool: &str, content: Option<&str>, kind: ToolKind) -> PermissionRequest {
    let signature = content.map_or_else(|| tool.to_owned(), |content| format!("{tool}:{content}"));
    PermissionRequest {
        tool_name: tool.into(),
        input: Default::default(),
        permission_mode: None,
        session_approved: false,
        affected_paths: Vec::new(),
        tool_kind: kind,
        tool_meta: ToolMeta { signature: Some(signature), ..ToolMeta::default() },
    }
}

fn command(command: &str, parts: &[&str]) -> PermissionRequest {
    let mut request = request("Bash", Some(command), ToolKind::Execute);
    request.tool_meta.parts = parts.iter().map(|part| format!("Bash:{part}")).collect();
    request
}

/// A call on `/w/<path>` with the working directory `/w`, spelled as `given`.
fn file(tool: &str, path: &str, given: &[&str]) -> PermissionRequest {
    let resolved = format!("/w/{path}");
    let mut request = request(tool, Some(&resolved), ToolKind::Write);
    request.affected_paths = vec![resolved.clone()];
    let given = given.iter().map(|given| (*given).to_owned()).collect();
    request.tool_meta.paths = vec![Place { resolved, also: vec![path.to_owned()], given, ..Place::default() }];
    request
}

fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Rules {
    let owned = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    Rules::parse(&RuleLists { allow: owned(allow), ask: owned(ask), deny: owned(deny) }, "rules").unwrap()
}

fn shown(verdict: Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Deny(_) => "deny",
        Verdict::Allow { specific: true } => "allow this",
        Verdict::Allow { specific: false } => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Silent => "silent",
    }
}

#[test]
fn every_part_of_a_call_must_be_allowed_and_none_denied() {
    let git = rules(&["Bash:git *", "Bash(ls:*)"], &[], &["Bash:rm*"]);
    let all = rules(&["Bash:*"], &[], &["Bash:rm*"]);
    for (content, parts, rules, expected) in [
        ("git log", &[][..], &git, "allow this"),
        ("git log; touch x", &["git log", "touch x"], &git, "silent"),
        ("git log && ls", &["git log", "ls"], &git, "allow this"),
        ("git log; rm x", &["git log", "rm x"], &git, "deny"),
        ("git log; rm x", &["git log", "rm x"], &all, "deny"),
        ("git log (", &["", "git log"], &git, "silent"),
        ("a; b", &["a", "b"], &all, "allow"),
        ("a (", &["", "a"], &all, "allow"),
        ("a; b", &["a", "b"], &rules(&["Bash:a; b"], &[], &[]), "allow this"),
        ("a; b", &["a", "b"], &rules(&["Bash(a; b)"], &[], &[]), "allow this"),
        ("a; b", &["a", "b"], &rules(&["Bash:a*"], &[], &[]), "silent"),
        ("a; b", &["a", "b"], &rules(&["Bash(a:*)"], &[], &[]), "silent"),
        ("a; b", &["a", "b"], &rules(&["*"], &[], &[]), "allow"),
        ("a; b", &["a", "b"], &rules(&["Ba*"], &[], &[]), "allow"),
        ("a; b", &["a", "b"], &rules(&["*"], &["Bash(b)"], &[]), "allow"),
        ("a; b", &["a", "b"], &rules(&[], &["Bash(b)"], &[]), "ask"),
        ("a; b", &["a", "b"], &rules(&[], &["Bash"], &[]), "ask"),
        ("a; b", &["a", "b"], &rules(&[], &[], &["Bash"]), "deny"),
    ] {
        assert_eq!(shown(rules.judge(&command(content, parts))), expected, "{content} {rules:?}");
    }
}

#[test]
fn a_bare_name_refuses_and_asks_for_every_call_and_allows_a_bare_signature_alone() {
    let npm = command("npm test", &[]);
    assert_eq!(shown(rules(&[], &[], &["Bash"]).judge(&npm)), "deny");
    assert_eq!(shown(rules(&[], &["Bash"], &[]).judge(&npm)), "ask");
    assert_eq!(shown(rules(&["Bash"], &[], &[]).judge(&npm)), "silent");
    for every in ["Bash(*)", "Bash:*", "Bash*", "Bash(:*)", "Bash(**)", "*"] {
        assert_eq!(shown(rules(&[every], &[], &[]).judge(&npm)), "allow", "{every}");
    }
    let custom = request("Search", None, ToolKind::Execute);
    assert_eq!(shown(rules(&["Search"], &[], &[]).judge(&custom)), "allow");
    assert_eq!(shown(rules(&["Search(x)"], &[], &[]).judge(&custom)), "silent");
    let mut named = request("Search", Some("x"), ToolKind::Execute);
    named.tool_meta.aliases = vec!["Find".into()];
    assert_eq!(shown(rules(&[], &[], &["Find(x)"]).judge(&named)), "deny");
    assert_eq!(shown(rules(&["Find(x)"], &[], &[]).judge(&named)), "silent", "an alias never widens");
}

#[test]
fn names_with_colons_and_parentheses_are_whole_signatures() {
    let odd = request("ns:search", None, ToolKind::Execute);
    assert_eq!(shown(rules(&["ns:search"], &[], &[]).judge(&odd)), "allow");
    for rule in ["ns:search", "ns:*", "ns:se*"] {
        assert_eq!(shown(rules(&[], &[], &[rule]).judge(&odd)), "deny", "{rule}");
    }
}

#[test]
fn signatures_match_exactly_by_prefix_or_everything() {
    for (rule, content, expected) in [
        ("*", "rm x", true),
        ("Bash:npm test", "npm test", true),
        ("Bash:npm test", "npm test -- x", false),
        ("Bash:npm test*", "npm test -- x", true),
        ("Bash:npm test*", "npm testing", true),
        ("Bash(npm test)", "npm test", true),
        ("Bash(npm test)", "npm test x", false),
        ("Bash(npm test:*)", "npm test -- x", true),
        ("Bash(npm test:*)", "npm test", true),
        ("Bash(npm test:*)", "npm testing", false),
        ("Bash(npm test:*)", "npm run", false),
        ("Bash:echo (a)", "echo (a)", true),
        ("BASH:npm test", "npm test", false),
    ] {
        let allowed = matches!(rules(&[rule], &[], &[]).judge(&command(content, &[])), Verdict::Allow { .. });
        assert_eq!(allowed, expected, "{rule} on {content}");
        let denied = matches!(rules(&[], &[], &[rule]).judge(&command(content, &[])), Verdict::Deny(_));
        assert_eq!(denied, expected, "{rule} denies {content}");
    }
}

#[test]
fn rules_about_files_hold_for_the_file_and_its_spellings() {
    let env = file("Read", "server/.env", &["/w/x/../server/.env", "link"]);
    for rule in [
        "Read(**/.env*)",
        "Read(.env)",
        "Read(/w/**/.env)",
        "Read(./server/.env)",
        "Read(server/*)",
        "Read:/w/server/.env",
        "Read:/w/server/*",
        "Read(/w/server:*)",
        "Read(link)",
        "Read",
        "*(.env)",
    ] {
        assert_eq!(shown(rules(&[], &[], &[rule]).judge(&env)), "deny", "{rule}");
    }
    for rule in ["Read(./.env)", "Read(/w/.env)", "Write(**/.env)", "Read(/w/serve:*)", "Read(*.env.local)"] {
        assert_eq!(shown(rules(&[], &[], &[rule]).judge(&env)), "silent", "{rule}");
    }
    // What a link is called says nothing about what it leads to.
    assert_eq!(shown(rules(&["Read(link)"], &[], &[]).judge(&env)), "silent");
    assert_eq!(shown(rules(&["Read(server/**)"], &[], &[]).judge(&env)), "allow this");
    assert_eq!(shown(rules(&["Read(**)"], &[], &[]).judge(&env)), "allow");
}

#[test]
fn a_subject_path_is_data_whatever_characters_it_has() {
    let names = ["src/api/[:id]/x.ts", "src/*/x", "src/{a}/x", "src/a b/x", "src/ünï/x", "src/?/x", "src/!(a)/x"];
    for name in names {
        assert_eq!(shown(rules(&["Edit(src/**)"], &[], &[]).judge(&file("Edit", name, &[]))), "allow this", "{name}");
        // Made by hand, with nothing but a signature.
        let bare = request("Edit", Some(name), ToolKind::Write);
        assert_eq!(shown(rules(&["Edit(src/**)"], &[], &[]).judge(&bare)), "allow this", "{name}");
        for other in names.iter().filter(|other| **other != name && !other.contains(['[', '*', '{', '?'])) {
            let rule = format!("Edit({other})");
            assert_eq!(shown(rules(&[&rule], &[], &[]).judge(&file("Edit", name, &[]))), "silent", "{rule} {name}");
        }
    }
}

#[test]
fn a_tool_without_content_is_judged_by_all_of_its_paths() {
    let mut copy = request("Copy", None, ToolKind::Execute);
    copy.affected_paths = vec!["src/a".into(), "lib/b".into()];
    for (allow, expected) in [
        (&["Copy(src/**)"][..], "silent"),
        (&["Copy(src/**)", "Copy(lib/**)"], "allow this"),
        (&["Copy"], "allow"),
        (&["Copy(src/**)", "*"], "allow"),
    ] {
        assert_eq!(shown(rules(allow, &[], &[]).judge(&copy)), expected, "{allow:?}");
    }
    assert_eq!(shown(rules(&["*"], &[], &["Copy(lib/**)"]).judge(&copy)), "deny");
    // A search is denied where it looks, and allowed by what it looks for.
    let mut search = request("Grep", Some("token"), ToolKind::ReadOnly);
    search.affected_paths = vec!["/w/secrets".into()];
    for rule in ["Grep(/w/secrets)", "Grep(/w/secrets/)", "Grep(/w/secrets/**)", "Grep(secrets)", "Grep(token)"] {
        assert_eq!(shown(rules(&[], &[], &[rule]).judge(&search)), "deny", "{rule}");
    }
    assert_eq!(shown(rules(&["Grep(/w/**)"], &[], &[]).judge(&search)), "silent");
}

#[test]
fn lists_are_looked_at_in_order_and_bad_rules_are_named_with_their_place() {
    let call = command("ls", &[]);
    assert_eq!(shown(rules(&["*"], &["*"], &["*"]).judge(&call)), "deny");
    assert_eq!(shown(rules(&["*"], &["*"], &[]).judge(&call)), "allow");
    assert_eq!(shown(rules(&[], &["*"], &[]).judge(&call)), "ask");
    assert_eq!(shown(Rules::default().judge(&call)), "silent");
    let lists = RuleLists { deny: vec!["*".into(), "Read(".into()], ..RuleLists::default() };
    let error = Rules::parse(&lists, "permissions").unwrap_err();
    assert_eq!(error.message, "permissions.deny[1]: \"Read(\" is no permission rule: its parentheses do not match");
}
