use super::*;

const PATHS: [&str; 12] = [
    "a.ts",
    "b.ts",
    "Readme.MD",
    ".env",
    ".github/w.yml",
    "lib/c.ts",
    "lib/deep/d.ts",
    "lib/e.js",
    "app/[id]/page.tsx",
    "n1.txt",
    "n2.txt",
    "n3.txt",
];

fn matching(pattern: &str, case: Case) -> Vec<&'static str> {
    let pattern = Pattern::parse(pattern, case).expect("valid");
    PATHS.into_iter().filter(|path| pattern.matches(path.as_bytes(), false)).collect()
}

#[test]
fn patterns_select_paths_as_in_fast_glob() {
    for (pattern, want) in [
        ("*.ts", vec!["a.ts", "b.ts"]),
        ("./*.ts", vec!["a.ts", "b.ts"]),
        ("**/*.ts", vec!["a.ts", "b.ts", "lib/c.ts", "lib/deep/d.ts"]),
        ("lib/**", vec!["lib/c.ts", "lib/deep/d.ts", "lib/e.js"]),
        ("lib/**/d.ts", vec!["lib/deep/d.ts"]),
        ("{a,b}.ts", vec!["a.ts", "b.ts"]),
        ("@(a|b).ts", vec!["a.ts", "b.ts"]),
        ("[ab].ts", vec!["a.ts", "b.ts"]),
        ("[!a].ts", vec!["b.ts"]),
        ("?.ts", vec!["a.ts", "b.ts"]),
        ("n{1..2}.txt", vec!["n1.txt", "n2.txt"]),
        ("{a..b}.ts", vec!["a.ts", "b.ts"]),
        ("**/.env*", vec![".env"]),
        (".github/*.yml", vec![".github/w.yml"]),
        ("*.md", vec!["Readme.MD"]),
        ("app/[id]/*.tsx", vec!["app/[id]/page.tsx"]),
        ("!**/*.{ts,txt,js,tsx}", vec!["Readme.MD", ".env", ".github/w.yml"]),
    ] {
        assert_eq!(matching(pattern, Case::Insensitive), want, "{pattern}");
    }
    assert_eq!(matching("*.md", Case::Sensitive), Vec::<&str>::new());
}

#[test]
fn literal_leading_segments_and_depth_bound_the_walk() {
    let pattern = Pattern::parse("Src/lib/*.ts", Case::Insensitive).expect("valid");
    assert!(pattern.may_contain(OsStr::new("src"), 1) && pattern.may_contain(OsStr::new("LIB"), 2));
    assert!(!pattern.may_contain(OsStr::new("test"), 1));
    assert_eq!(pattern.max_depth(), Some(3));
    for (text, depth) in [("**/a", None), ("*.ts", Some(1)), ("{a/b,c}/d", None), ("{a,c}/d", Some(2)), ("!x", None)] {
        assert_eq!(Pattern::parse(text, Case::Sensitive).expect("valid").max_depth(), depth, "{text}");
    }
}

#[test]
fn a_pattern_that_leaves_its_directory_is_refused() {
    for text in ["../x", "a/../b", "**/.."] {
        assert_eq!(Pattern::parse(text, Case::Sensitive).map(|_| ()), Err(PatternError::Parent(text.into())));
    }
}

#[test]
fn unusable_patterns_are_named() {
    for (text, part) in [
        ("./", "names no file"),
        ("+(a|b)", "not supported"),
        ("!(a)", "not supported"),
        ("{1..5000}", "more than 1000"),
        ("{a", "not valid"),
        ("[z-a]", "not valid"),
    ] {
        let message = Pattern::parse(text, Case::Sensitive).map(|_| ()).expect_err(text).to_string();
        assert!(message.contains(part) && message.contains(text), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn an_absolute_pattern_is_split_at_its_last_plain_directory() {
    for (text, base, rest) in
        [("/r/s/**/*.ts", "/r/s/", "**/*.ts"), ("/r/s/a.ts", "/r/s/", "a.ts"), ("/r/s*/x", "/r/", "s*/x")]
    {
        let pattern = Pattern::parse(text, Case::Sensitive).expect("valid");
        assert_eq!((pattern.base.as_deref(), pattern.relative.as_str()), (Some(Path::new(base)), rest));
    }
}
