//! Path safety: system directories and sensitive files.

use std::collections::HashSet;

use super::request::{PermissionDecision, PermissionRequest};
use super::rules::{Rules, Verdict};
use super::sensitive::{Sensitivity, sensitivity};

const SYSTEM_PREFIXES: &[&str] = &[
    "/etc/",
    "/sys/",
    "/proc/",
    "/dev/",
    "/boot/",
    "/root/",
    // Where macOS keeps what its /etc leads to.
    "/private/etc/",
    "c:/windows/system32",
    "c:/program files",
    "c:/programdata",
];

/// Decides by the paths a call touches, as given and where they lead. `allow_rules` are explicit rules of the
/// application; only those that allow count.
pub fn decide_by_path_safety(request: &PermissionRequest, allow_rules: &Rules) -> PermissionDecision {
    let mut seen = HashSet::new();
    let leading_to = request.tool_meta.paths.iter().map(|place| &place.resolved).filter(|path| !path.is_empty());
    let paths: Vec<&str> =
        request.affected_paths.iter().chain(leading_to).map(String::as_str).filter(|path| seen.insert(*path)).collect();
    let dangerous: Vec<&str> = paths.iter().copied().filter(|path| is_system_path(path)).collect();
    if !dangerous.is_empty() {
        return PermissionDecision::deny(system_paths(&dangerous));
    }
    let sensitive: Vec<(&str, Sensitivity)> = paths
        .iter()
        .filter_map(|path| sensitivity(path).map(|level| (*path, level)))
        .filter(|(_, level)| *level >= Sensitivity::Medium)
        .collect();
    if sensitive.is_empty() {
        return PermissionDecision::allow();
    }
    let explicit = matches!(allow_rules.judge(request), Verdict::Allow { .. });
    let high: Vec<&str> =
        sensitive.iter().filter(|(_, level)| *level == Sensitivity::High).map(|(path, _)| *path).collect();
    if !high.is_empty() && !explicit {
        return PermissionDecision::deny(format!(
            "access to sensitive files denied: {}; add an explicit allow rule for \"{}\" to permit it",
            high.join(", "),
            request.signature()
        ));
    }
    if explicit {
        let names: Vec<&str> = sensitive.iter().map(|(path, _)| *path).collect();
        return PermissionDecision::ask(format!("sensitive file access detected: {}", names.join(", ")));
    }
    PermissionDecision::allow()
}

/// What inside of a Session no rule and no answer lifts: `..` in a path as given, and system directories, unless the
/// path leads into an authorised root, which was chosen on purpose.
pub fn forbidden_paths(request: &PermissionRequest) -> Option<String> {
    let mut forbidden: Vec<&str> = Vec::new();
    for (path, place) in request.affected_paths.iter().zip(&request.tool_meta.paths) {
        if !place.plainly_inside && is_system_path(path) {
            forbidden.push(path);
        } else if !place.inside && is_system_path(&place.resolved) {
            forbidden.push(&place.resolved);
        }
    }
    (!forbidden.is_empty()).then(|| system_paths(&forbidden))
}

/// Why the paths of a call should not be touched silently: keys and credentials, as given or where they lead.
pub fn sensitive_paths(request: &PermissionRequest) -> Option<String> {
    let leading_to = request.tool_meta.paths.iter().map(|place| &place.resolved);
    let mut paths = request.affected_paths.iter().chain(leading_to);
    let found = paths.find(|path| sensitivity(path) == Some(Sensitivity::High))?;
    Some(format!("{found} holds keys or credentials"))
}

fn system_paths(paths: &[&str]) -> String {
    format!("access to dangerous system paths denied: {}", paths.join(", "))
}

/// Whole segments count, so that `a..b` is no climb; the comparison ignores case.
fn is_system_path(path: &str) -> bool {
    let path = path.replace('\\', "/").to_lowercase();
    let top = if path.starts_with('/') { "/" } else { "" };
    let segments: Vec<&str> = path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    if segments.contains(&"..") {
        return true;
    }
    let with_slash = format!("{top}{}/", segments.join("/"));
    SYSTEM_PREFIXES.iter().any(|prefix| with_slash.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ToolKind;
    use crate::permissions::{Place, ToolMeta};

    fn request(paths: &[&str]) -> PermissionRequest {
        PermissionRequest {
            tool_name: "T".into(),
            input: Default::default(),
            permission_mode: None,
            session_approved: false,
            affected_paths: paths.iter().map(|p| (*p).to_owned()).collect(),
            tool_kind: ToolKind::Write,
            tool_meta: ToolMeta::default(),
        }
    }

    fn leading(path: &str, resolved: &str, inside: bool) -> PermissionRequest {
        let mut request = request(&[path]);
        let plainly_inside = inside && path == resolved;
        request.tool_meta.paths = vec![Place { resolved: resolved.into(), inside, plainly_inside, ..Place::default() }];
        request
    }

    #[test]
    fn a_path_is_judged_by_its_text_and_by_where_it_leads() {
        for (path, resolved, inside, refused) in [
            ("/w/x", "/w/x", true, false),
            ("/root/app/x", "/root/app/x", true, false),
            ("/root/app/x", "/root/app/x", false, true),
            ("/w/link", "/etc/passwd", false, true),
            ("/etc/link", "/w/x", true, true),
            ("/w/a/../x", "/w/x", true, true),
            ("x", "/w/x", true, false),
        ] {
            let refusal = forbidden_paths(&leading(path, resolved, inside));
            assert_eq!(refusal.is_some(), refused, "{path} to {resolved}");
        }
        assert!(sensitive_paths(&leading("/w/public", "/home/me/.ssh/id_rsa", false)).is_some());
        assert!(sensitive_paths(&leading("/w/id_rsa", "/w/x", true)).is_some());
        assert!(sensitive_paths(&leading("/w/.env", "/w/.env", true)).is_none());
        let decision = decide_by_path_safety(&leading("/w/link", "/etc/passwd", false), &Rules::default());
        assert!(matches!(decision, PermissionDecision::Deny { .. }));
    }

    #[test]
    fn system_paths_and_climbs_are_denied_and_look_alikes_are_not() {
        for path in [
            "/etc/passwd",
            "/ETC/x",
            "/etc",
            "//etc/passwd",
            "/./etc//passwd",
            "///etc/.",
            "/proc/self/root/w/x",
            "/dev/fd/3",
            "/private/etc/passwd",
            "/srv/../etc",
            "C:\\Windows\\System32\\x",
            "C://windows/./system32",
            "/root/.x",
        ] {
            assert!(
                matches!(decide_by_path_safety(&request(&[path]), &Rules::default()), PermissionDecision::Deny { .. }),
                "{path}"
            );
        }
        for path in ["/srv/project/a..b/file.ts", "/srv/etc/x", "/etcetera/x", "relative/file"] {
            assert_eq!(
                decide_by_path_safety(&request(&[path]), &Rules::default()),
                PermissionDecision::allow(),
                "{path}"
            );
        }
    }

    #[test]
    fn high_files_need_an_explicit_rule_and_then_a_question() {
        let rules = Rules::allowing(&["T".to_owned()], "rules").unwrap();
        assert!(matches!(
            decide_by_path_safety(&request(&["/r/id_rsa"]), &Rules::default()),
            PermissionDecision::Deny { .. }
        ));
        assert!(matches!(decide_by_path_safety(&request(&["/r/id_rsa"]), &rules), PermissionDecision::Ask { .. }));
        assert_eq!(decide_by_path_safety(&request(&["/r/.env"]), &Rules::default()), PermissionDecision::allow());
        assert!(matches!(decide_by_path_safety(&request(&["/r/.env"]), &rules), PermissionDecision::Ask { .. }));
    }
}
