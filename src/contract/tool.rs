//! The tool trait: typed for authors of built-in tools, erased for the registry and the pipeline.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::behavior::Behavior;
use super::context::{PrepareContext, ToolContext};
use super::input::Input;
use super::result::{ToolError, ToolErrorType, ToolFailure, ToolOutcome, ToolSuccess};
use super::spec::ToolSpec;

/// Arguments of a call, and what a typed tool has made of them.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The object, with the model's own text for as long as nothing rewrote it.
    pub object: Input,
    /// The parameters of the tool, from preparing to executing; gone with a rewrite.
    params: Option<Arc<dyn Any + Send + Sync>>,
}

impl Arguments {
    /// Arguments as they came.
    pub fn new(object: Input) -> Self {
        Self { object, params: None }
    }

    /// Arguments that were built here rather than sent as text.
    pub fn from_object(object: Map<String, Value>) -> Self {
        Self::new(object.into())
    }

    /// JSON text of the arguments.
    pub fn to_json(&self) -> String {
        self.object.to_json()
    }

    /// Sets fields that somebody wants changed.
    pub fn merge(&mut self, fields: Map<String, Value>) {
        for (key, value) in fields {
            self.set(&key, value);
        }
    }

    /// Sets one field.
    pub fn set(&mut self, key: &str, value: Value) {
        self.object.set(key, value);
        self.params = None;
    }

    /// The parameters as a type: those that were parsed before, if they are of this type.
    fn take_params<P: DeserializeOwned + Send + Sync + 'static>(&mut self) -> Result<P, ToolFailure> {
        match self.params.take().and_then(|params| params.downcast::<P>().ok()).and_then(Arc::into_inner) {
            Some(params) => Ok(params),
            None => parse(&self.object),
        }
    }
}

/// Fields a tool wants replaced before permissions are asked, for instance a path by its canonical form.
pub type Rewrites = Vec<(&'static str, Value)>;

/// What permissions judge a call by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// Content of the permission signature `Name:<content>`; `None` makes the signature the bare name.
    pub content: Option<String>,
    /// What the call consists of, where that is more than its content says as a whole: a rule that allows contents must
    /// hold for each part, one that denies them for any. An empty part stands for what was not understood.
    pub parts: Vec<String>,
    /// Paths the call touches.
    pub affected_paths: Vec<String>,
    /// How the call spelled them before they were rewritten, in the same order; empty where they were not.
    pub given_paths: Vec<String>,
    /// Whether `affected_paths` are canonical and inside the authorised roots: the tool has made sure of both.
    pub canonical: bool,
    /// Sentence for a confirmation, where the tool has a better one than the default.
    pub description: Option<String>,
}

/// A built-in tool. The arguments are validated against the schema before any method sees them.
///
/// Contract: methods may be called from any thread; `execute` is called once per call, after permission; dropping its
/// future must release everything it holds.
pub trait Tool: Send + Sync + 'static {
    /// Arguments as a type.
    type Params: DeserializeOwned + Send + Sync + 'static;

    /// The declaration.
    fn spec(&self) -> &ToolSpec;

    /// Behaviour of this call; may only narrow what the declaration says.
    fn behavior(&self, params: &Self::Params) -> Behavior {
        let _ = params;
        self.spec().behavior
    }

    /// What permissions judge the call by.
    fn subject(&self, params: &Self::Params) -> Subject {
        let _ = params;
        Subject::default()
    }

    /// Checks beyond the schema, and rewrites such as canonical paths. Runs before permissions are asked and must not
    /// change anything outside.
    ///
    /// # Errors
    /// The failure is the call's result.
    fn prepare(
        &self,
        params: &Self::Params,
        cx: &PrepareContext,
    ) -> impl Future<Output = Result<Rewrites, ToolFailure>> + Send {
        let _ = (params, cx);
        std::future::ready(Ok(Rewrites::new()))
    }

    /// Does the work.
    ///
    /// # Errors
    /// The failure is the call's result.
    fn execute(
        &self,
        params: Self::Params,
        cx: ToolContext,
    ) -> impl Future<Output = Result<ToolSuccess, ToolFailure>> + Send;
}

/// What a tool itself says about one of its calls, before anybody else does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "behavior", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ToolVerdict {
    /// The tool has nothing against it; others still judge.
    Allow {
        /// Fields to merge into the input; it is prepared again.
        #[serde(default)]
        updated_input: Option<Map<String, Value>>,
    },
    /// It must not run.
    Deny {
        /// Why, for the model.
        message: String,
        /// End the request after this call.
        #[serde(default)]
        interrupt: bool,
    },
    /// A person has to confirm it, whatever the mode.
    Ask {
        /// Why.
        #[serde(default)]
        message: Option<String>,
    },
}

/// A call that is ready to be judged.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Final arguments.
    pub arguments: Arguments,
    /// Behaviour of this call.
    pub behavior: Behavior,
    /// What permissions judge it by.
    pub subject: Subject,
}

/// Boxed future of an erased tool.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Any tool, whatever its parameters: what the registry holds and the pipeline calls.
pub trait AnyTool: Send + Sync + 'static {
    /// The declaration.
    fn spec(&self) -> &ToolSpec;

    /// Checks and rewrites arguments that already match the schema; see [`Tool::prepare`].
    fn prepare<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a PrepareContext,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>>;

    /// Whether [`AnyTool::permission`] has anything to say.
    fn judges_itself(&self) -> bool {
        false
    }

    /// What the tool itself says about a call whose arguments match.
    fn permission<'a>(
        &'a self,
        arguments: &'a Arguments,
        cx: &'a PrepareContext,
    ) -> BoxFuture<'a, Result<ToolVerdict, ToolError>> {
        let _ = (arguments, cx);
        Box::pin(std::future::ready(Ok(ToolVerdict::Allow { updated_input: None })))
    }

    /// Behaviour of a call with these arguments, never more than declared. Arguments nothing can be said about count as
    /// [`Behavior::unknown`].
    fn behavior_of(&self, arguments: &Arguments) -> Behavior {
        let _ = arguments;
        self.spec().behavior
    }

    /// Does the work; see [`Tool::execute`].
    fn execute(&self, arguments: Arguments, cx: ToolContext) -> BoxFuture<'_, ToolOutcome>;
}

impl<T: Tool> AnyTool for T {
    fn spec(&self) -> &ToolSpec {
        Tool::spec(self)
    }

    fn prepare<'a>(
        &'a self,
        mut arguments: Arguments,
        cx: &'a PrepareContext,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        Box::pin(async move {
            let mut params: T::Params = parse(&arguments.object)?;
            let rewrites = Tool::prepare(self, &params, cx).await?;
            let mut given_paths = Vec::new();
            if !rewrites.is_empty() {
                // A rule about the name the model used must not lose to the name of what it leads to.
                given_paths = self.subject(&params).affected_paths;
                for (key, value) in rewrites {
                    arguments.set(key, value);
                }
                params = parse(&arguments.object)?;
            }
            let behavior = resolved(self, &params);
            let subject = Subject { given_paths, ..self.subject(&params) };
            arguments.params = Some(Arc::new(params));
            Ok(Prepared { behavior, subject, arguments })
        })
    }

    fn behavior_of(&self, arguments: &Arguments) -> Behavior {
        match parse(&arguments.object) {
            Ok(params) => resolved(self, &params),
            Err(_) => Tool::spec(self).behavior.unknown(),
        }
    }

    fn execute(&self, mut arguments: Arguments, cx: ToolContext) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            match arguments.take_params() {
                Ok(params) => Tool::execute(self, params, cx).await.into(),
                Err(failure) => ToolOutcome::Error(failure),
            }
        })
    }
}

/// What the tool says of this call, held against its declaration.
fn resolved<T: Tool>(tool: &T, params: &T::Params) -> Behavior {
    let declared = Tool::spec(tool).behavior;
    let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tool.behavior(params)));
    if said.is_err() {
        tracing::error!(tool = %Tool::spec(tool).name, "the tool cannot say what this call does");
    }
    declared.narrowed(said.ok())
}

fn parse<P: DeserializeOwned>(input: &Input) -> Result<P, ToolFailure> {
    let parsed = match input.unread() {
        Some(text) => serde_json::from_str(text),
        None => P::deserialize(input.object()),
    };
    // JSON Schema takes `5.0` for an integer, Rust does not.
    let parsed = parsed.or_else(|error| match with_integers(input.object()) {
        Some(object) => P::deserialize(&object).map_err(|_| error),
        None => Err(error),
    });
    parsed.map_err(|error| {
        ToolFailure::from(
            ToolError::new(ToolErrorType::ValidationError, format!("arguments do not fit the tool: {error}"))
                .with_code("TOOL_VALIDATION_ERROR"),
        )
    })
}

/// The object with its whole numbers as integers; `None` where they are already.
fn with_integers(object: &Map<String, Value>) -> Option<Map<String, Value>> {
    /// Beyond it, doubles are whole because they cannot be anything else.
    const EXACT: f64 = 9_007_199_254_740_991.0;
    fn convert(value: &mut Value) -> bool {
        match value {
            Value::Array(items) => items.iter_mut().fold(false, |changed, item| convert(item) | changed),
            Value::Object(object) => object.values_mut().fold(false, |changed, item| convert(item) | changed),
            Value::Number(number) if number.is_f64() => match number.as_f64() {
                Some(whole) if whole.fract() == 0.0 && whole.abs() <= EXACT => {
                    *number = (whole as i64).into();
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }
    let mut object = object.clone();
    object.values_mut().fold(false, |changed, value| convert(value) | changed).then_some(object)
}
