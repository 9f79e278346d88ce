//! The modes table.

use super::request::{PermissionDecision, PermissionRequest};
use crate::contract::{PermissionMode, ToolKind};

/// Decides by mode alone. `fallback` is used when the request names no mode.
pub fn decide_by_mode(request: &PermissionRequest, fallback: PermissionMode) -> PermissionDecision {
    let mode = request.permission_mode.unwrap_or(fallback);
    let meta = &request.tool_meta;
    if mode == PermissionMode::Plan && !meta.is_read_only {
        return PermissionDecision::deny(format!(
            "plan mode only runs tools that read; {} would change something, so leave plan mode first",
            request.tool_name
        ));
    }
    if request.session_approved {
        return PermissionDecision::allow();
    }
    if meta.is_destructive {
        return PermissionDecision::ask("destructive operation requires explicit confirmation");
    }
    let runs = meta.is_read_only
        || mode == PermissionMode::Yolo
        || (mode == PermissionMode::AutoEdit && request.tool_kind == ToolKind::Write);
    if runs { PermissionDecision::allow() } else { PermissionDecision::ask("user confirmation required") }
}
