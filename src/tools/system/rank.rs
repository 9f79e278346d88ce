//! How well a tool fits a query. Pure.
//!
//! Each field has a base score; a better kind of match adds to it; the best field counts (pipeline.md §14).

use crate::contract::CatalogEntry;

const NAME: u32 = 120;
const ALIAS: u32 = 110;
const DISPLAY_NAME: u32 = 90;
const HINT: u32 = 45;
const DESCRIPTION: u32 = 30;

/// The entries that match, best first, ties by name.
pub(super) fn ranked(query: &str, entries: Vec<CatalogEntry>) -> Vec<CatalogEntry> {
    let query = normalized(query);
    let mut scored: Vec<(u32, CatalogEntry)> =
        entries.into_iter().filter_map(|entry| Some((score(&query, &entry)?, entry))).collect();
    scored.sort_by(|(a, first), (b, second)| b.cmp(a).then_with(|| first.name.cmp(&second.name)));
    scored.into_iter().map(|(_, entry)| entry).collect()
}

fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn score(query: &str, entry: &CatalogEntry) -> Option<u32> {
    let aliases = entry.aliases.iter().map(|alias| (ALIAS, &**alias));
    let fields = [(NAME, &*entry.name), (HINT, entry.hint.as_str()), (DESCRIPTION, entry.description.as_str())];
    let display = entry.display_name.as_deref().map(|name| (DISPLAY_NAME, name));
    fields.into_iter().chain(aliases).chain(display).filter_map(|(base, text)| Some(base + fit(query, text)?)).max()
}

fn fit(query: &str, text: &str) -> Option<u32> {
    let text = normalized(text);
    if text.is_empty() || query.is_empty() {
        None
    } else if text == query {
        Some(100)
    } else if text.starts_with(query) {
        Some(60)
    } else if text.contains(query) {
        Some(30)
    } else {
        let all = query.contains(' ') && query.split(' ').all(|word| text.contains(word));
        all.then_some(20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, display: &str, hint: &str, description: &str) -> CatalogEntry {
        CatalogEntry {
            name: name.into(),
            aliases: vec![format!("{name}Alias").into()],
            display_name: (!display.is_empty()).then(|| display.to_owned()),
            description: description.into(),
            hint: hint.into(),
        }
    }

    #[test]
    fn the_score_is_that_of_the_best_field_and_the_best_match() {
        let of = |field: &str, text: &str| {
            let mut entry = CatalogEntry {
                name: "-".into(),
                aliases: Vec::new(),
                display_name: None,
                description: String::new(),
                hint: String::new(),
            };
            match field {
                "name" => entry.name = text.into(),
                "alias" => entry.aliases = vec!["-".into(), text.into()],
                "display name" => entry.display_name = Some(text.to_owned()),
                "hint" => entry.hint = text.to_owned(),
                _ => entry.description = text.to_owned(),
            }
            entry
        };
        for (field, base) in [("name", 120), ("alias", 110), ("display name", 90), ("hint", 45), ("description", 30)] {
            for (text, query, more) in [
                ("Rotate Logs", "rotate logs", Some(100)),
                ("Rotate Logs", "  ROTATE   LOGS ", Some(100)),
                ("Rotate Logs", "rotate", Some(60)),
                ("Rotate Logs", "logs", Some(30)),
                ("Rotate Logs", "otate l", Some(30)),
                ("Rotate Logs", "logs rotate", Some(20)),
                ("Rotate Logs", "logs delete", None),
                ("Rotate Logs", "delete", None),
                ("", "delete", None),
            ] {
                let expected = more.map(|more| base + more);
                assert_eq!(score(&normalized(query), &of(field, text)), expected, "{query:?} in the {field} {text:?}");
            }
        }
        let mut both = of("name", "deploy later");
        both.description = "deploy".to_owned();
        assert_eq!(score("deploy", &both), Some(180), "fields are not added up");
    }

    #[test]
    fn better_fields_and_better_matches_come_first_and_ties_go_by_name() {
        let entries = || {
            vec![
                entry("Zeta", "", "", "deploys a service to a target"),
                entry("Alpha", "", "", "deploys a service to a target"),
                entry("Deploy", "", "", "ships"),
                entry("DeployLater", "", "", "ships"),
                entry("Other", "Deploy", "", "ships"),
                entry("Hinted", "", "how to deploy", "ships"),
                entry("Unrelated", "", "", "reads"),
            ]
        };
        let names = |query: &str| -> Vec<String> {
            ranked(query, entries()).iter().map(|entry| entry.name.to_string()).collect()
        };
        assert_eq!(names("  DEPLOY "), ["Deploy", "Other", "DeployLater", "Alpha", "Zeta", "Hinted"]);
        assert_eq!(names("service   target"), ["Alpha", "Zeta"]);
        assert_eq!(names("DeployAlias"), ["Deploy"]);
        assert!(names("nothing like it").is_empty());
        assert!(names("   ").is_empty());
    }
}
