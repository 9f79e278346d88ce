//! Who may do what: the modes table, rules, path safety, remembered approvals, and the ports through which an
//! application decides and people confirm.

mod argument_paths;
mod call;
mod decide;
mod modes;
mod paths;
mod pattern;
mod places;
mod request;
mod rule;
mod rules;
mod sensitive;
mod session_rules;

pub use argument_paths::argument_paths;
pub use decide::{Answer, Barriers, Known, Listed, Outcome, Reasons, Source, decide};
pub use modes::decide_by_mode;
pub use paths::{decide_by_path_safety, forbidden_paths, sensitive_paths};
pub use places::{Place, as_stated, locate, locate_now};
pub use request::{
    Confirmation, ConfirmationPort, ConfirmationRequest, ConfirmationScope, PermissionDecision, PermissionPort,
    PermissionRequest, ToolMeta,
};
pub use rule::{Rule, RuleError};
pub use rules::{RuleLists, Rules, Verdict, decide_by_rules, denial, question};
pub use sensitive::{Sensitivity, sensitivity};
pub use session_rules::{PermissionUpdates, SessionRules, Standing};
