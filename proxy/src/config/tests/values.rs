//! Values that cannot be used, by table: the change, its line and column, and what it says.

use super::*;

/// What is changed in the full file, into what, and its only error.
const UNUSABLE: &[(&str, &str, &str)] = &[
    ("count = 2", "count = 0", "8:9: \"count\" in [shards] must be between 1 and 256"),
    ("count = 2", "count = 257", "8:9: \"count\" in [shards] must be between 1 and 256"),
    ("count = 2", "count = -1", "8:9: \"count\" in [shards] must be between 1 and 256"),
    (
        "\"epoll\"",
        "\"epol\"",
        "9:10: \"driver\" in [shards] must be auto, uring or epoll; did \
         you mean \"epoll\"?",
    ),
    ("\"epoll\"", "\"kqueue\"", "9:10: \"driver\" in [shards] must be auto, uring or epoll"),
    (
        "kind = \"openai\"",
        "kind = \"opnai\"",
        "13:8: kind must be openai or anthropic; did \
         you mean \"openai\"?",
    ),
    ("kind = \"openai\"", "kind = \"bedrock\"", "13:8: kind must be openai or anthropic"),
    (
        "\"127.0.0.1:5180\"",
        "\"localhost:5180\"",
        "4:8: \"data\" in [listen] must be an \
         address and a port, such as \"127.0.0.1:4180\" or \"[::1]:4180\"",
    ),
    (
        "\"[::1]:5181\"",
        "\"5181\"",
        "5:9: \"admin\" in [listen] must be an address and a \
         port, such as \"127.0.0.1:4180\" or \"[::1]:4180\"",
    ),
    (
        "\"[::1]:5181\"",
        "\"0.0.0.0:5181\"",
        "5:9: \"admin\" in [listen] must be a loopback \
         address: tokens for it are not built yet",
    ),
    (
        "\"[::1]:5181\"",
        "\"127.0.0.1:5180\"",
        "5:9: \"data\" and \"admin\" in [listen] are the \
         same address",
    ),
    (
        "\"edge-1\"",
        "\"edge 1\"",
        "1:8: the name of the node must have 1 to 64 letters, \
         digits, \"-\", \"_\" or \".\"",
    ),
    (
        "name = \"claude\"",
        "name = \"a/b\"",
        "19:8: the name of a provider must have 1 to 64 \
         letters, digits, \"-\", \"_\" or \".\"",
    ),
    ("name = \"claude\"", "name = \"openai\"", "19:8: there is a provider \"openai\" already"),
    (
        "\"gpt-*\", \"o3\"",
        "\"gpt-*\", \"gpt-*\"",
        "16:20: there is a pattern of models \
         \"gpt-*\" already",
    ),
    (
        "\"gpt-*\", \"o3\"",
        "\"gpt-*\", \"*-4\"",
        "16:20: a pattern of models has one \"*\", at \
         its end",
    ),
    (
        "\"gpt-*\", \"o3\"",
        "\"gpt-*\", \"\"",
        "16:20: a pattern of models must have 1 to 256 \
         printable ASCII characters, no space at either end",
    ),
    ("name = \"gpt-4.1\"", "name = \"fast\"", "29:8: there is a model \"fast\" already"),
    (
        "name = \"gpt-4.1\"",
        "name = \" x\"",
        "29:8: the name of a model must have 1 to 256 \
         printable ASCII characters, no space at either end",
    ),
    (
        "name = \"gpt-4.1\"",
        "name = \"a\\r\\nb\"",
        "29:8: the name of a model must have 1 to \
         256 printable ASCII characters, no space at either end",
    ),
    (
        "name = \"gpt-4.1\"",
        "name = \"claude/x\"",
        "29:8: model \"claude/x\" is read as \
         provider/model and never as this name",
    ),
    (
        "{ provider = \"openai\" }",
        "{ provider = \"opnai\" }",
        "30:28: there is no provider \
         \"opnai\"; did you mean \"openai\"?",
    ),
    ("[{ provider = \"openai\" }]", "[]", "28:1: [[model]] has no candidate"),
    (
        "[{ name = \"main\", key = \"${OPENAI_API_KEY}\" }]",
        "[]",
        "11:1: [[provider]] has no \
         credential",
    ),
    ("name = \"second\"", "name = \"first\"", "42:8: there is a key \"first\" already"),
    ("\"1123456789abcdef", "\"0123456789abcdef", "43:10: another [[key]] has the same sha256"),
    (
        "\"1123456789abcdef",
        "\"x123456789abcdef",
        "43:10: sha256 must be the 64 hexadecimal \
         digits of a key's SHA-256",
    ),
    (
        "\"1123456789abcdef",
        "\"123456789abcdef",
        "43:10: sha256 must be the 64 hexadecimal \
         digits of a key's SHA-256",
    ),
    ("\"1MiB\"", "1023", "46:17: \"request_bytes\" in [limits] must be between 1KiB and 1GiB"),
    (
        "\"1MiB\"",
        "\"8MiB\"",
        "47:14: \"held_bytes\" in [limits] is below \"request_bytes\": \
         the largest request would never fit",
    ),
    ("4194304", "\"1025GiB\"", "47:14: \"held_bytes\" in [limits] must be at most 1024GiB"),
    (
        "\"500ms\"",
        "\"0s\"",
        "54:8: \"body\" in [deadlines] must be between 100ms, the step of \
         the clock, and 24h",
    ),
    (
        "\"500ms\"",
        "\"25h\"",
        "54:8: \"body\" in [deadlines] must be between 100ms, the step \
         of the clock, and 24h",
    ),
    (
        "default = \"fast\"",
        "default = \"fsat\"",
        "33:11: alias \"default\" leads to \"fsat\", \
         which nothing serves; did you mean \"fast\"?",
    ),
    (
        "default = \"fast\"",
        "default = \"openai/\"",
        "33:11: alias \"default\" names a \
         provider and no model",
    ),
    (
        "default = \"fast\"",
        "default = \"old\"",
        "33:11: alias \"default\" leads to the alias \
         \"old\"; write \"gpt-5\" instead",
    ),
    (
        "default = \"fast\"",
        "default = \"default\"",
        "33:11: alias \"default\" leads in a \
         circle",
    ),
    (
        "default = \"fast\"",
        "fast = \"gpt-5\"",
        "33:1: alias \"fast\" hides the model of the \
         same name",
    ),
    (
        "[limits]",
        "[price]\nfile = \"none.json\"\n[limits]",
        "46:8: price file \"none.json\" \
         cannot be read: entity not found",
    ),
    (
        "[limits]",
        "[price]\nfile = \"bad.json\"\n[limits]",
        "46:8: price file \"bad.json\": \
         invalid type: floating point `1.5`, expected u32 at line 2 column 16",
    ),
];

#[test]
fn a_value_that_cannot_be_used_is_refused_at_its_place() {
    for &(from, to, wanted) in UNUSABLE {
        changed(from, to, &[&format!("tollgate.toml:{wanted}")]);
    }
    let long = format!("\"{}\"", "m".repeat(257));
    let wanted = "tollgate.toml:26:46: the name of a candidate's model must have 1 to 256 \
                  printable ASCII characters, no space at either end";
    changed("\"gpt-4o-mini\"", &long, &[wanted]);
}

#[test]
fn cycles_and_digests_of_nothing_are_seen() {
    let found = errors(&FULL.replace("default = \"fast\"", "a = \"b\"\nb = \"c\"\nc = \"a\""));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|error| error.ends_with("leads in a circle")), "{found:?}");
    let found = errors(&FULL.replace("default = \"fast\"", "x = \"a\"\na = \"b\"\nb = \"a\""));
    let ends: Vec<&str> = found.iter().map(|error| error.rsplit(": ").next().unwrap()).collect();
    let circle = |name| format!("alias \"{name}\" leads in a circle");
    assert_eq!(ends, ["alias \"x\" leads to the alias \"a\"", &circle("a"), &circle("b")]);
    for nothing in [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "01BA4719C80B6FE911B091A7C05124B64EEECE964E09C058EF8F9805DACA546B",
    ] {
        let digest = ring::digest::digest(&ring::digest::SHA256, b"");
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let line = ring::digest::digest(&ring::digest::SHA256, b"\n");
        let line: String = line.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert!([hex, line].contains(&nothing.to_ascii_lowercase()));
        let text = format!("{MINIMAL}[[key]]\nname = \"k\"\nsha256 = \"{nothing}\"\n");
        assert_eq!(errors(&text), ["tollgate.toml:10:10: sha256 is the digest of an empty key"]);
    }
}
