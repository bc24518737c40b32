//! Secrets come from elsewhere, and no error, report or `Debug` shows one.

use super::*;

#[test]
fn a_secret_comes_from_elsewhere_and_is_never_shown() {
    for (reference, wanted) in [
        (
            SECRET,
            "a secret does not belong in this file: write \"${VARIABLE}\" or \
             \"file:/path\"",
        ),
        ("", "a secret does not belong in this file: write \"${VARIABLE}\" or \"file:/path\""),
        ("${}", "the name in \"${…}\" is not that of an environment variable"),
        ("${1A}", "the name in \"${…}\" is not that of an environment variable"),
        ("${sk-0123}", "the name in \"${…}\" is not that of an environment variable"),
        ("${ABSENT}", "environment variable ABSENT is not set"),
        ("${EMPTY}", "the secret in EMPTY is empty"),
        (
            "${BROKEN}",
            "the secret in BROKEN has a space, a control character or a letter outside \
             ASCII in it",
        ),
        ("file:", "a secret's \"file:\" needs a path"),
        (
            "file:two-lines",
            "the secret in two-lines has a space, a control character or a letter \
             outside ASCII in it",
        ),
        ("file:/none", "secret file /none cannot be read: entity not found"),
    ] {
        let text = MINIMAL.replace("${OPENAI_API_KEY}", reference);
        let found = errors(&text);
        assert_eq!(found, [format!("tollgate.toml:6:39: {wanted}")]);
        assert!(!format!("{:?}", read(&text)).contains(SECRET));
    }
    let mut world = World::usual();
    world.variables.insert("OPENAI_API_KEY", "k".repeat(8 * 1024 + 1));
    let long = parse("t", MINIMAL, &world).unwrap_err();
    assert_eq!(long.to_string(), "t:6:39: the secret in OPENAI_API_KEY is longer than 8 KiB");
    world.variables.insert("OPENAI_API_KEY", "k".repeat(8 * 1024));
    assert!(parse("t", MINIMAL, &world).is_ok());
}

/// A secret in the wrong place: as a value of another key, or where a syntax error is.
#[test]
fn a_misplaced_secret_is_not_repeated() {
    let quoted = format!("\"{SECRET}\"");
    for text in [
        MINIMAL.replace("[{ name = \"main\", key = \"${OPENAI_API_KEY}\" }]", &quoted),
        MINIMAL
            .replace("[{ name = \"main\", key = \"${OPENAI_API_KEY}\" }]", &format!("[{quoted}]")),
        MINIMAL.replace("\"${OPENAI_API_KEY}\"", &format!("[{quoted}]")),
        MINIMAL.replace("\"${OPENAI_API_KEY}\"", SECRET),
        MINIMAL.replace("\"${OPENAI_API_KEY}\"", &format!("\"{SECRET}")),
        MINIMAL.replace("http://127.0.0.1:9000/v1", &format!("http://user:{SECRET}@host/v1")),
        MINIMAL.replace("http://127.0.0.1:9000/v1", &format!("http://host/v1?key={SECRET}")),
        MINIMAL.replace("kind = \"openai\"", &format!("kind = {quoted}")),
        format!("{MINIMAL}[[key]]\nname = \"k\"\nsha256 = {quoted}\n"),
        format!("{MINIMAL}[shards]\ncount = {quoted}\ndriver = {quoted}\n"),
        format!("{MINIMAL}[listen]\ndata = {quoted}\nadmin = {quoted}\n"),
        format!("{MINIMAL}[limits]\nheld_bytes = {quoted}\n[deadlines]\nbody = {quoted}\n"),
        format!("{MINIMAL}[retry]\nx = {quoted}\n"),
    ] {
        let errors = read(&text).unwrap_err();
        assert!(!errors.to_string().contains(SECRET), "{errors}");
        assert!(!format!("{errors:?}").contains(SECRET), "{errors:?}");
    }
}
