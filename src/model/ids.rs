//! Identifiers as distinct types, so that one kind cannot stand in for another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes an existing identifier as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// A fresh identifier that sorts by creation time.
            pub fn generate() -> Self {
                Self(format!(concat!($prefix, "{}"), uuid::Uuid::now_v7().simple()).into())
            }

            /// The text of the identifier.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    )*};
}

id_types! {
    /// A Session; a non-empty, safe path segment.
    SessionId, "sess_";
    /// One accepted request of a Session.
    RequestId, "req_";
    /// One accepted input.
    InputId, "input_";
    /// One message of the conversation.
    MessageId, "msg_";
    /// One tool call as the model named it.
    ToolUseId, "call_";
    /// One question to whoever confirms.
    PermissionRequestId, "perm_";
    /// One run of a tool call through the pipeline; never the same twice, unlike what models name calls.
    ExecutionId, "exec_";
}
