use super::*;
use crate::contract::{
    Arguments, Behavior, BoxFuture, Exposure, ExposureMode, PermissionMode, PrepareContext, Prepared, Subject,
    ToolContext, ToolFailure, ToolKind, ToolOutcome, ToolPolicy, ToolSelector, ToolSuccess,
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
    builder.register(plain("mcp__a__b"), mcp()).unwrap();
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

fn mcp() -> SourceInfo {
    SourceInfo { kind: SourceKind::Mcp, trust_level: TrustLevel::Remote, source_id: "server".into() }
}

#[test]
fn names_and_aliases_are_unique_and_reserved_prefixes_are_kept() {
    let mut builder = RegistryBuilder::default();
    builder.register(tool("A", ToolKind::Execute, |s| s.aliases = vec!["B".into()]), SourceInfo::custom()).unwrap();
    let long = "x".repeat(65);
    let aliased = |aliases: &[&str]| {
        let aliases = aliases.iter().map(|alias| Arc::from(*alias)).collect();
        tool("C", ToolKind::Execute, |s| s.aliases = aliases)
    };
    for (refused, source, says) in [
        (plain("A"), SourceInfo::builtin(), "tool name \"A\" is registered twice, by session and by builtin"),
        (plain("B"), SourceInfo::custom(), "tool name \"B\" is already an alias of tool \"A\": rename one"),
        (plain("mcp__x"), SourceInfo::custom(), "tool name \"mcp__x\" is reserved"),
        (plain("x"), mcp(), "tool name \"x\" is no name of an MCP tool"),
        (plain(""), SourceInfo::custom(), "tool name \"\" is not usable: use 1 to 64 of the characters"),
        (plain("a b"), SourceInfo::custom(), "tool name \"a b\" is not usable"),
        (plain("a.b"), SourceInfo::custom(), "tool name \"a.b\" is not usable"),
        (plain("Ä"), SourceInfo::custom(), "tool name \"Ä\" is not usable"),
        (plain(&long), SourceInfo::custom(), "is not usable: use 1 to 64"),
        (plain(&format!("mcp__{}", "x".repeat(124))), mcp(), "is not usable: use 1 to 128"),
        (aliased(&["mcp__x"]), SourceInfo::custom(), "tool name \"mcp__x\" is reserved"),
        (aliased(&[""]), SourceInfo::custom(), "alias \"\" of tool \"C\" is not usable"),
        (aliased(&[&long]), SourceInfo::custom(), "of tool \"C\" is not usable: use 1 to 64"),
        (aliased(&["C"]), SourceInfo::custom(), "alias \"C\" of tool \"C\" is its own name or listed twice"),
        (aliased(&["D", "D"]), SourceInfo::custom(), "alias \"D\" of tool \"C\" is its own name or listed twice"),
        (aliased(&["A"]), SourceInfo::custom(), "alias \"A\" of tool \"C\" is already a name of tool \"A\""),
        (aliased(&["B"]), SourceInfo::custom(), "alias \"B\" of tool \"C\" is already a name of tool \"A\""),
    ] {
        let error = builder.register(refused, source).unwrap_err().to_string();
        assert!(error.contains(says), "{error:?} should say {says:?}");
    }
    builder.register(plain(&"x".repeat(64)), SourceInfo::custom()).unwrap();
    builder.register(plain(&format!("mcp__{}", "x".repeat(123))), mcp()).unwrap();
    assert_eq!(builder.build().len(), 3, "a refused tool leaves nothing behind");
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

fn selectors(list: &[&str]) -> Vec<ToolSelector> {
    list.iter().map(|text| ToolSelector::parse(text).unwrap()).collect()
}

#[test]
fn a_selector_is_a_name_or_a_name_with_brackets() {
    for (text, name) in
        [("Bash", "Bash"), ("Bash(git:*)", "Bash"), (" Read ", "Read"), ("Bash()", "Bash"), ("B (x)", "B")]
    {
        assert!(ToolSelector::parse(text).is_some_and(|selector| selector.selects(name)), "{text}");
    }
    for text in ["", " ", "(x)", "Bash(x", "Bash(", "Bash)", "Bash(x) y"] {
        assert_eq!(ToolSelector::parse(text), None, "{text}");
    }
    assert!(!selectors(&["Bash(git:*)"])[0].selects("bash"));
}

#[test]
fn the_first_reason_to_hide_a_tool_is_the_one_that_is_told() {
    let mut builder = RegistryBuilder::default();
    let hidden = |s: &mut ToolSpec| {
        s.exposure.mode = ExposureMode::Deferred;
        s.aliases = vec!["Alias".into()];
    };
    builder.register(tool("Tool", ToolKind::Execute, hidden), SourceInfo::custom()).unwrap();
    let registry = builder.build();
    let tool = registry.get("Tool").unwrap();
    let mut policy = ExposurePolicy {
        mode: PermissionMode::Plan,
        sources: SourcePolicy { allowed_sources: vec![SourceKind::Builtin], ..SourcePolicy::default() },
        tools: Some(ToolPolicy { allow: Some(selectors(&["Other"])), deny: selectors(&["Tool(x)"]) }),
        ..ExposurePolicy::default()
    };
    let reasons = |policy: &ExposurePolicy| {
        let word = |reason: Option<Hidden>| reason.map(Hidden::as_str);
        (word(policy.hidden(tool)), word(policy.uncallable(tool)), policy.is_discoverable(tool))
    };
    assert_eq!(reasons(&policy), (Some("plan-mode-hidden"), Some("source-policy"), false));
    policy.mode = PermissionMode::Default;
    assert_eq!(reasons(&policy), (Some("source-policy"), Some("source-policy"), false));
    policy.sources = SourcePolicy::default();
    assert_eq!(reasons(&policy), (Some("runtime-deny"), Some("runtime-deny"), false));
    policy.tools = Some(ToolPolicy { allow: Some(selectors(&["Alias"])), deny: Vec::new() });
    assert_eq!(
        reasons(&policy),
        (Some("runtime-allow-list"), Some("runtime-allow-list"), false),
        "an alias allows nothing"
    );
    policy.tools = Some(ToolPolicy { allow: None, deny: selectors(&["Alias"]) });
    assert_eq!(reasons(&policy), (Some("runtime-deny"), Some("runtime-deny"), false), "any name denies");
    policy.tools = Some(ToolPolicy { allow: Some(selectors(&["Tool(x)"])), deny: Vec::new() });
    assert_eq!(reasons(&policy), (Some("not-discovered"), Some("not-discovered"), true));
    policy.discovered.insert("Tool".into());
    assert_eq!(reasons(&policy), (None, None, false));
    policy.tools = Some(ToolPolicy { allow: Some(Vec::new()), deny: Vec::new() });
    assert_eq!(
        reasons(&policy),
        (Some("runtime-allow-list"), Some("runtime-allow-list"), false),
        "empty allows nothing"
    );
}

#[test]
fn the_catalog_lists_twelve_deferred_tools_while_the_finder_is_declared() {
    let with_finder = || {
        let mut builder = RegistryBuilder::default();
        builder.register(tool("Find", ToolKind::ReadOnly, |_| {}), SourceInfo::builtin()).unwrap();
        builder
    };
    let policy = ExposurePolicy::default();
    let mut builder = with_finder();
    let only = tool("Only", ToolKind::ReadOnly, |s| s.exposure.mode = ExposureMode::DiscoverableOnly);
    builder.register(only, SourceInfo::custom()).unwrap();
    assert_eq!(builder.build().catalog_text(&policy, "Find"), None, "nothing is deferred");

    let registry = {
        let mut builder = with_finder();
        for n in 10..24 {
            let deferred = tool(&format!("T{n}"), ToolKind::Execute, |s| {
                s.description = format!("does\t {n}\nand more");
                s.exposure.mode = ExposureMode::Deferred;
                if n == 10 {
                    s.display_name = Some("Ten".into());
                    s.exposure.discovery_hint = "hint\nmore".into();
                    s.description = "d".repeat(300);
                }
            });
            builder.register(deferred, SourceInfo::custom()).unwrap();
        }
        builder.build()
    };
    let catalog = registry.catalog_text(&policy, "Find").unwrap();
    let lines: Vec<&str> = catalog.lines().collect();
    assert_eq!(lines.len(), 14, "{catalog}");
    assert_eq!(lines[1], format!("- T10 (Ten): {}… [deferred] hint", "d".repeat(200)));
    assert_eq!(lines[2], "- T11: does 11 [deferred]");
    assert_eq!(lines[13], "2 more are found by searching.");
    assert_eq!(registry.catalog_text(&policy, "Missing"), None);
    let denied = |deny: &[&str]| ExposurePolicy {
        tools: Some(ToolPolicy { allow: None, deny: selectors(deny) }),
        ..ExposurePolicy::default()
    };
    assert_eq!(registry.catalog_text(&denied(&["Find"]), "Find"), None, "what cannot be activated is not listed");
    let fewer = registry.catalog_text(&denied(&["T10", "T11", "T12"]), "Find").unwrap();
    assert!(!fewer.contains("T10") && fewer.contains("T23") && !fewer.contains("more are"), "{fewer}");
    let plan = ExposurePolicy { mode: PermissionMode::Plan, ..ExposurePolicy::default() };
    assert_eq!(registry.catalog_text(&plan, "Find"), None, "none of them only reads");
}
