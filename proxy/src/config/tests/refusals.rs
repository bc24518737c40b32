//! Every kind of error by table: the file, its line and column, and what it says.

use super::*;

#[test]
fn an_unknown_key_gets_the_nearest_name() {
    for (from, to, wanted) in [
        (
            "base_url = \"http://api.openai.test/v1/\"",
            "base_ulr = \"http://api.openai.test/v1/\"",
            &[
                "tollgate.toml:11:1: [[provider]] lacks \"base_url\"",
                "tollgate.toml:14:1: unknown key \"base_ulr\" in [[provider]]; did you mean \
                 \"base_url\"?",
            ][..],
        ),
        (
            "node = \"edge-1\"",
            "noed = \"edge-1\"",
            &["tollgate.toml:1:1: unknown key \"noed\" in the top level; did you mean \"node\"?"],
        ),
        (
            "node = \"edge-1\"",
            "drain = \"8s\"",
            &["tollgate.toml:1:1: unknown key \"drain\" in the top level; it belongs to \
               [deadlines]"],
        ),
        (
            "admin = \"[::1]:5181\"",
            "zebra = 1",
            &["tollgate.toml:5:1: unknown key \"zebra\" in [listen]; its keys are data, admin, \
                 tls"],
        ),
        (
            "driver = \"epoll\"",
            "\"a\\nb\" = 1",
            &["tollgate.toml:9:1: unknown key \"a\\nb\" in [shards]; its keys are count, driver"],
        ),
        (
            "{ name = \"main\", key = \"${OPENAI_API_KEY}\" }",
            "{ name = \"main\", key = \"${OPENAI_API_KEY}\", wieght = 1 }",
            &["tollgate.toml:15:60: unknown key \"wieght\" in credentials of [[provider]]; did \
               you mean \"weight\"?"],
        ),
        (
            "{ provider = \"openai\" }",
            "{ providr = \"openai\" }",
            &[
                "tollgate.toml:30:15: candidates of [[model]] lacks \"provider\"",
                "tollgate.toml:30:17: unknown key \"providr\" in candidates of [[model]]; did you \
                 mean \"provider\"?",
            ],
        ),
        (
            "[deadlines]",
            "[deadline]",
            &["tollgate.toml:49:2: unknown key \"deadline\" in the top level; did you mean \
               \"deadlines\"?"],
        ),
    ] {
        changed(from, to, wanted);
    }
}

/// What is changed in the full file, into what, and one of its errors.
const WRONG_TYPES: &[(&str, &str, &str)] = &[
    ("\"edge-1\"", "1.5", "1:8: \"node\" in the top level must be a text, not a float"),
    ("\"edge-1\"", "true", "1:8: \"node\" in the top level must be a text, not a boolean"),
    ("\"edge-1\"", "1979-05-27", "1:8: \"node\" in the top level must be a text, not a date"),
    (
        "count = 2",
        "count = \"2\"",
        "8:9: \"count\" in [shards] must be a whole number, not a \
         text",
    ),
    (
        "count = 2",
        "count = 2.0",
        "8:9: \"count\" in [shards] must be a whole number, not a \
         float",
    ),
    ("count = 2", "count = 99999999999999999999", "8:9: \"count\" in [shards] is too large"),
    (
        "[\"gpt-*\", \"o3\"]",
        "\"gpt-*\"",
        "16:10: \"models\" in [[provider]] must be a list of \
         texts, not a text",
    ),
    (
        "[\"gpt-*\", \"o3\"]",
        "[\"gpt-*\", 3]",
        "16:20: \"models\" in [[provider]] must be a \
         text, not a whole number",
    ),
    (
        "[{ provider = \"openai\" }]",
        "[3]",
        "30:15: \"candidates\" in [[model]] must be a list \
         of tables, not a whole number",
    ),
    (
        "[{ provider = \"openai\" }]",
        "{ provider = \"openai\" }",
        "30:14: \"candidates\" in \
         [[model]] must be a list of tables, not a table",
    ),
    (
        "old = \"gpt-5\"",
        "old = 1",
        "35:7: \"old\" in [alias] must be a text, not a whole \
         number",
    ),
    (
        "\"1MiB\"",
        "\"1MB\"",
        "46:17: \"request_bytes\" in [limits] must be bytes as a whole \
         number or a text such as \"32MiB\"",
    ),
    (
        "\"1MiB\"",
        "1.5",
        "46:17: \"request_bytes\" in [limits] must be bytes as a whole \
         number or a text such as \"32MiB\"",
    ),
    (
        "\"1MiB\"",
        "-1",
        "46:17: \"request_bytes\" in [limits] must be bytes as a whole \
         number or a text such as \"32MiB\"",
    ),
    (
        "\"500ms\"",
        "500",
        "54:8: \"body\" in [deadlines] must be a whole number with a unit, \
         such as \"500ms\", \"10s\" or \"2m\"",
    ),
    (
        "\"500ms\"",
        "\"0.5s\"",
        "54:8: \"body\" in [deadlines] must be a whole number with a \
         unit, such as \"500ms\", \"10s\" or \"2m\"",
    ),
];

#[test]
fn a_value_of_the_wrong_type_is_named_and_not_shown() {
    for &(from, to, wanted) in WRONG_TYPES {
        let text = FULL.replace(from, to);
        assert_ne!(text, FULL, "{from}");
        let found = errors(&text);
        assert!(found.contains(&format!("tollgate.toml:{wanted}")), "{to}: {found:#?}");
    }
    let lists = "alias = 1\nlisten = 1\nprice = []\nlimits = \"\"\nshards = 1\n".to_owned()
        + "deadlines = 1\nkey = 1\nmodel = {}\nprovider = [[]]\n";
    let found = errors(&lists);
    assert_eq!(found.len(), 10, "{found:#?}");
}

#[test]
fn all_errors_are_told_at_once_in_the_order_of_the_file() {
    let text = "nod = 1\n[shards]\ncount = 0\n[[provider]]\nname = \"a/b\"\nkind = \"x\"\n\
                base_url = \"x\"\n[[key]]\nsha256 = \"0\"\n[alias]\na = \"b\"\n";
    let found: Vec<String> = errors(text)
        .iter()
        .map(|error| error.splitn(4, ':').skip(1).take(2).collect::<Vec<_>>().join(":"))
        .collect();
    let wanted = ["1:1", "3:9", "4:1", "5:8", "6:8", "7:12", "8:1", "9:10", "11:5"];
    assert_eq!(found, wanted);
    assert_eq!(errors(""), ["tollgate.toml:1:1: there is no [[provider]]"]);
    let many: String = (0..150).map(|n| format!("zzzzzz{n} = 1\n")).collect();
    let found = errors(&many);
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "tollgate.toml: and 51 more");
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    for (text, place) in [
        ("a = ", "1:5"),
        ("a = 1\na = 2\n", "2:1"),
        ("[listen]\ndata = \"x\n", "2:10"),
        ("[[provider]]\nname = 'ü' x\n", "2:12"),
        ("[listen]\n[listen]\n", "2:2"),
        ("= 1", "1:1"),
    ] {
        let found = errors(text);
        let place = format!("tollgate.toml:{place}: ");
        assert!(found[0].starts_with(&place), "{text:?}: {found:?}");
    }
}

/// Everything a file can have many of: read in the time of a test, told in a bounded answer.
#[test]
fn a_huge_file_is_bounded() {
    let many =
        |count: usize, line: &dyn Fn(usize) -> String| -> String { (0..count).map(line).collect() };
    let chain = many(100_001, &|n| format!("a{n} = \"a{}\"\n", n + 1));
    let models = many(50_000, &|n| {
        format!("[[model]]\nname = \"m{n}\"\ncandidates = [{{ provider = \"openai\" }}]\n")
    });
    let patterns = many(1_001, &|n| format!("\"p{n}-*\", "));
    for (text, wanted) in [
        (format!("{MINIMAL}[alias]\n{chain}"), "there are 100001 aliases, more than 100000"),
        (
            MINIMAL.replace("\"gpt-*\"", &patterns),
            "there are 1001 patterns of models, more than 1000",
        ),
        (format!("a = {}", "[".repeat(100_000)), ""),
        (format!("{MINIMAL}{models}[alias]\na = \"mm\"\n"), "leads to \"mm\""),
    ] {
        let found = errors(&text);
        assert!(found[0].contains(wanted), "{}", found[0]);
        assert!(found.len() <= 101);
    }
    let config = good(&format!("{MINIMAL}{models}"));
    assert_eq!(config.snapshot.models.len(), 50_000);
    assert_eq!(config.warnings.len(), 101);
    assert_eq!(config.warnings[100].located("t"), "t: and 49900 more");
}

#[test]
fn a_key_that_is_there_twice_is_named() {
    for (text, wanted) in [
        ("node = \"a\"\nnode = \"b\"\n", "tollgate.toml:2:1: duplicate key \"node\""),
        ("[log]\n[limits]\n[log]\n", "tollgate.toml:3:2: duplicate key \"log\""),
        (
            "listen = { data = \"127.0.0.1:1\", data = \"127.0.0.1:2\" }\n",
            "tollgate.toml:1:34: duplicate key \"data\"",
        ),
    ] {
        let refused = parse("tollgate.toml", text, &World::usual()).unwrap_err();
        assert_eq!(refused.to_string(), wanted);
    }
}
