//! Errors as data. The facade builds the documented classes from it.

use serde_json::json;

use crate::error::Error;

/// JSON text of an error.
pub fn to_json(error: &Error) -> String {
    json!({
        "code": error.code.as_str(),
        "message": error.message,
        "status": error.status,
        "cause": error.cause,
        "details": error.details,
    })
    .to_string()
}

/// An error that is thrown into JavaScript; its message is the JSON text, which the facade turns into a class.
pub fn thrown(error: &Error) -> napi::Error {
    napi::Error::from_reason(to_json(error))
}
