use super::*;
use crate::contract::{
    Arguments, Behavior, BoxFuture, Exposure, PrepareContext, Prepared, Subject, ToolContext, ToolFailure, ToolKind,
    ToolOutcome, ToolSuccess,
};
use crate::schema::Schema;

struct Plain(ToolSpec);

impl AnyTool for Plain {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn prepare<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a PrepareContext,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let behavior = self.0.behavior;
        Box::pin(async move { Ok(Prepared { arguments, behavior, subject: Subject::default() }) })
    }
    fn execute(&self, _: Arguments, _: ToolContext) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async { ToolOutcome::Success(ToolSuccess::new("ok")) })
    }
}

fn tool(name: &str, kind: ToolKind, edit: impl FnOnce(&mut ToolSpec)) -> Arc<dyn AnyTool> {
    let schema = Schema::compile(r#"{"type":"object"}"#).unwrap();
    let mut spec = ToolSpec::new(name, "does something", schema, Behavior::of(kind));
    edit(&mut spec);
    Arc::new(Plain(spec))
}

fn plain(name: &str) -> Arc<dyn AnyTool> {
    tool(name, ToolKind::Execute, |_| {})
}

fn names(registry: &ToolRegistry, policy: &ExposurePolicy) -> Vec<String> {
    registry.declarations(policy).list.iter().map(|d| d.name.to_string()).collect()
}

#[test]
fn tools_are_listed_by_name_with_mcp_tools_last_and_aliases_follow_them() {
    let mut builder = RegistryBuilder::default();
    let mcp = SourceInfo { kind: SourceKind::Mcp, trust_level: TrustLevel::Remote, source_id: "s".into() };
    builder.register(plain("mcp__a__b"), mcp).unwrap();
    builder.register(plain("Zed"), SourceInfo::custom()).unwrap();
    builder
        .register(tool("Alpha", ToolKind::Execute, |s| s.aliases = vec!["Old".into()]), SourceInfo::custom())
        .unwrap();
    let registry = builder.build();
    assert_eq!(names(&registry, &ExposurePolicy::default()), ["Alpha", "Zed", "mcp__a__b"]);
    assert_eq!(&*registry.get("Old").unwrap().spec().name, "Alpha");
    assert_eq!(&*registry.get("Zed").unwrap().spec().name, "Zed");
    assert!(registry.get("zed").is_none());
}

#[test]
fn names_and_aliases_are_unique_and_reserved_prefixes_are_kept() {
    let mut builder = RegistryBuilder::default();
    builder.register(tool("A", ToolKind::Execute, |s| s.aliases = vec!["B".into()]), SourceInfo::custom()).unwrap();
    let mut refuse = |tool, source| builder.register(tool, source).unwrap_err();
    assert_eq!(refuse(plain("A"), SourceInfo::custom()), RegistryError::DuplicateName("A".into()));
    assert_eq!(refuse(plain("B"), SourceInfo::custom()), RegistryError::DuplicateName("B".into()));
    assert_eq!(refuse(plain("mcp__x"), SourceInfo::custom()), RegistryError::ReservedName("mcp__x".into()));
    assert_eq!(refuse(plain(""), SourceInfo::custom()), RegistryError::BadName(String::new()));
    assert_eq!(refuse(plain("a b"), SourceInfo::custom()), RegistryError::BadName("a b".into()));
    for (alias, error) in [
        ("mcp__x", RegistryError::ReservedName("mcp__x".into())),
        ("", RegistryError::BadName(String::new())),
        ("a b", RegistryError::BadName("a b".into())),
    ] {
        let aliased = tool("C", ToolKind::Execute, |s| s.aliases = vec![alias.into()]);
        assert_eq!(refuse(aliased, SourceInfo::custom()), error, "an alias keeps the rules of a name");
    }
    let own = tool("C", ToolKind::Execute, |s| s.aliases = vec!["C".into()]);
    assert!(matches!(refuse(own, SourceInfo::custom()), RegistryError::DuplicateAlias { .. }));
    let taken = tool("C", ToolKind::Execute, |s| s.aliases = vec!["A".into()]);
    assert!(matches!(refuse(taken, SourceInfo::custom()), RegistryError::DuplicateAlias { .. }));
    assert_eq!(builder.build().len(), 1, "a refused tool leaves nothing behind");
}

#[test]
fn exposure_follows_mode_source_and_discovery() {
    let mut builder = RegistryBuilder::default();
    let deferred = |always| {
        move |s: &mut ToolSpec| {
            s.exposure = Exposure { mode: ExposureMode::Deferred, always_load: always, ..Exposure::default() };
        }
    };
    builder.register(tool("Look", ToolKind::ReadOnly, |_| {}), SourceInfo::builtin()).unwrap();
    builder.register(plain("Run"), SourceInfo::custom()).unwrap();
    builder.register(tool("Later", ToolKind::ReadOnly, deferred(false)), SourceInfo::custom()).unwrap();
    builder.register(tool("Loaded", ToolKind::ReadOnly, deferred(true)), SourceInfo::custom()).unwrap();
    let registry = builder.build();
    let mut policy = ExposurePolicy::default();
    assert_eq!(names(&registry, &policy), ["Loaded", "Look", "Run"]);
    policy.discovered.insert("Later".into());
    assert_eq!(names(&registry, &policy), ["Later", "Loaded", "Look", "Run"]);
    policy.mode = PermissionMode::Plan;
    assert_eq!(names(&registry, &policy), ["Later", "Loaded", "Look"]);
    policy.sources.allowed_sources = vec![SourceKind::Builtin];
    assert_eq!(names(&registry, &policy), ["Look"]);
}

#[test]
fn a_filter_without_allow_list_admits_everything_and_an_empty_one_nothing() {
    let filter = |allowed: Option<&[&str]>, disallowed: &[&str]| ToolFilter {
        allowed: allowed.map(|list| list.iter().map(|s| (*s).to_owned()).collect()),
        disallowed: disallowed.iter().map(|s| (*s).to_owned()).collect(),
    };
    let a = tool("A", ToolKind::Execute, |spec| spec.aliases = vec!["Alias".into()]);
    for (allowed, disallowed, expected) in [
        (None, &[][..], true),
        (Some(&[][..]), &[], false),
        (Some(&["A"]), &[], true),
        (Some(&["A"]), &["A"], false),
        (Some(&["a"]), &[], false),
        (None, &["Alias"], false),
        (Some(&["Alias"]), &[], false),
    ] {
        assert_eq!(filter(allowed, disallowed).admits(a.spec()), expected, "{allowed:?} {disallowed:?}");
    }
}
