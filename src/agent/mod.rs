//! The turn loop: one driver per request that calls the model, runs the tools it asks for, and publishes what happens.
//! Decisions are pure functions in [`decide`]; the driver performs effects and feeds answers back.

mod answer;
mod conversation;
mod decide;
mod driver;
mod effects;
mod events;
mod sink;

pub use conversation::Conversation;
pub use driver::{DeclarationCache, RequestEnd, RequestOptions, RequestReport, ToolRecord, run_request};
pub use effects::SessionEffects;
pub use events::{EventQueue, FRAME_EVENTS, Frame, FrameText, MARK_LENGTH, Take, TextKind};
