//! Whatever a file looks like, it is a configuration or a list of errors: never a panic, and the
//! secrets it refers to are in neither.

use super::*;
use proptest::prelude::*;

/// Changes to one file; more only make it unlike a configuration.
const CHANGES_MAX: usize = 6;

/// A change: where (as a share of the file), how many bytes go, what comes.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let fragments = prop::sample::select(vec![
        "",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\n",
        ",",
        "#",
        "'",
        "\"\"\"",
        ".",
        "-1",
        "1.5",
        "0",
        "true",
        "[[provider]]\n",
        "[alias]\n",
        "[limits]\n",
        "a = \"a\"\n",
        "\u{0}",
        "\r",
        "é",
        "\u{feff}",
        "inf",
        "0x",
        "1979-05-27",
        "{}",
        "[]",
        "99999999999999999999",
        "/",
        "*",
        "%25",
    ]);
    let text = prop_oneof![4 => fragments.prop_map(str::to_owned), 1 => ".{0,8}"];
    (any::<prop::sample::Index>(), 0..40_usize, text)
}

fn mutated(changes: &[(prop::sample::Index, usize, String)]) -> String {
    let mut letters: Vec<char> = FULL.chars().collect();
    for (at, gone, new) in changes {
        let start = at.index(letters.len() + 1);
        let end = (start + gone).min(letters.len());
        letters.splice(start..end, new.chars());
    }
    letters.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1_000,
                                        ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_file_is_a_value(changes in prop::collection::vec(change(), 1..CHANGES_MAX)) {
        let text = mutated(&changes);
        let shown = match read(&text) {
            Ok(config) => {
                prop_assert!(!config.snapshot.providers.is_empty());
                format!("{config:?}\n{}\n{}", check::report(&config), check::report_json(&config))
            }
            Err(errors) => {
                prop_assert!(!errors.errors.is_empty());
                let places: Vec<_> = errors.errors.iter().map(|e| (e.line, e.column)).collect();
                prop_assert!(places.is_sorted() || errors.errors.len() > 100);
                format!("{errors:?}\n{errors}\n{}", check::errors_json(&errors))
            }
        };
        prop_assert!(!shown.contains(SECRET), "{}", shown);
    }

    #[test]
    fn any_text_is_a_value(text in "\\PC*|[\\[\\]{}=\"'\n a-z0-9.#,-]{0,200}") {
        // Nothing this short has a provider with a credential in it.
        prop_assert!(read(&text).is_err());
    }
}
