//! Who may do what: the modes table, rules, path safety, remembered approvals, and the ports through which an
//! application decides and people confirm.

mod approvals;
mod modes;
mod paths;
mod request;
mod rules;
mod sensitive;

pub use approvals::Approvals;
pub use modes::decide_by_mode;
pub use paths::decide_by_path_safety;
pub use request::{
    Confirmation, ConfirmationPort, ConfirmationRequest, ConfirmationScope, PermissionDecision, PermissionPort,
    PermissionRequest, ToolMeta,
};
pub use rules::{RuleLists, decide_by_rules};
pub use sensitive::{Sensitivity, sensitivity};
