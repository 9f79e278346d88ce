//! Path safety: system directories and sensitive files.

use super::request::{PermissionDecision, PermissionRequest};
use super::rules::rule_matches;
use super::sensitive::{Sensitivity, sensitivity};

const SYSTEM_PREFIXES: &[&str] = &[
    "/etc/",
    "/sys/",
    "/proc/",
    "/dev/",
    "/boot/",
    "/root/",
    "c:/windows/system32",
    "c:/program files",
    "c:/programdata",
];

/// Decides by the paths a call touches. `allow_rules` are explicit allow rules of the application.
pub fn decide_by_path_safety(request: &PermissionRequest, allow_rules: &[String]) -> PermissionDecision {
    let dangerous: Vec<&str> =
        request.affected_paths.iter().map(String::as_str).filter(|path| is_system_path(path)).collect();
    if !dangerous.is_empty() {
        return PermissionDecision::deny(format!("access to dangerous system paths denied: {}", dangerous.join(", ")));
    }
    let sensitive: Vec<(&str, Sensitivity)> = request
        .affected_paths
        .iter()
        .filter_map(|path| sensitivity(path).map(|level| (path.as_str(), level)))
        .filter(|(_, level)| *level >= Sensitivity::Medium)
        .collect();
    if sensitive.is_empty() {
        return PermissionDecision::allow();
    }
    let explicit = allow_rules.iter().any(|rule| rule_matches(rule, request.signature()));
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

/// Whole segments count, so that `a..b` is no climb; the comparison ignores case.
fn is_system_path(path: &str) -> bool {
    let path = path.replace('\\', "/").to_lowercase();
    if path.split('/').any(|segment| segment == "..") {
        return true;
    }
    let with_slash = format!("{path}/");
    SYSTEM_PREFIXES.iter().any(|prefix| with_slash.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{SideEffect, ToolKind};
    use crate::permissions::ToolMeta;

    fn request(paths: &[&str]) -> PermissionRequest {
        PermissionRequest {
            tool_name: "T".into(),
            input: Default::default(),
            permission_mode: None,
            session_approved: false,
            affected_paths: paths.iter().map(|p| (*p).to_owned()).collect(),
            tool_kind: ToolKind::Write,
            tool_meta: ToolMeta {
                side_effect: SideEffect::NonIdempotent,
                is_read_only: false,
                is_concurrency_safe: false,
                is_destructive: false,
                signature: None,
                parts: Vec::new(),
                description: None,
            },
        }
    }

    #[test]
    fn system_paths_and_climbs_are_denied_and_look_alikes_are_not() {
        for path in ["/etc/passwd", "/ETC/x", "/etc", "/srv/../etc", "C:\\Windows\\System32\\x", "/root/.x"] {
            assert!(matches!(decide_by_path_safety(&request(&[path]), &[]), PermissionDecision::Deny { .. }), "{path}");
        }
        for path in ["/srv/project/a..b/file.ts", "/srv/etc/x", "/etcetera/x", "relative/file"] {
            assert_eq!(decide_by_path_safety(&request(&[path]), &[]), PermissionDecision::allow(), "{path}");
        }
    }

    #[test]
    fn high_files_need_an_explicit_rule_and_then_a_question() {
        let rules = vec!["T".to_owned()];
        assert!(matches!(decide_by_path_safety(&request(&["/r/id_rsa"]), &[]), PermissionDecision::Deny { .. }));
        assert!(matches!(decide_by_path_safety(&request(&["/r/id_rsa"]), &rules), PermissionDecision::Ask { .. }));
        assert_eq!(decide_by_path_safety(&request(&["/r/.env"]), &[]), PermissionDecision::allow());
        assert!(matches!(decide_by_path_safety(&request(&["/r/.env"]), &rules), PermissionDecision::Ask { .. }));
    }
}
