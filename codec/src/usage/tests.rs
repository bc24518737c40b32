//! Shapes by table: the fixtures of the contracts, odd counts, fields of two conventions.

use super::*;
use crate::json::split_proof::reply_split;

fn read(answer: &str) -> UsageEnvelope {
    envelope(&reply_split(answer.as_bytes(), answer.len(), 1).usage)
}

/// uncached, read, written for five minutes, written for an hour, output
fn buckets(usage: &UsageEnvelope) -> [u32; 5] {
    [
        usage.input_fresh,
        usage.input_cache_read,
        usage.input_cache_write_5m,
        usage.input_cache_write_1h,
        usage.output,
    ]
}

/// Found by the simulation: an answer that broke off behind its `prompt_tokens` was charged as if
/// that were all it had used.
#[test]
fn a_report_that_breaks_off_is_no_report() {
    let whole = r#"{"choices":[],"usage":{"prompt_tokens":300,"completion_tokens":50,
        "total_tokens":350,"prompt_tokens_details":{"cached_tokens":100}}}"#;
    let closes = whole.len() - 1;
    for end in 0..=whole.len() {
        let usage = read(&whole[..end]);
        let seen = match end {
            _ if end >= closes => Provenance::Reported,
            // The comma behind the number ends it.
            _ if end > whole.find(",\"completion").unwrap() => Provenance::Estimated,
            _ => Provenance::Missing,
        };
        assert_eq!(usage.provenance, seen, "{}", &whole[..end]);
        assert_eq!(usage.flags.contains(UsageFlags::UNFINISHED), end > 22 && end < closes);
    }
    assert_eq!(buckets(&read(whole)), [200, 100, 0, 0, 50]);
    let gemini = r#"{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3"#;
    assert_eq!(read(gemini).provenance, Provenance::Estimated);
}

#[test]
fn fixtures_of_the_contracts() {
    let cases = [
        // F1, F10
        (
            r#"{"usage":{"prompt_tokens":300,"prompt_tokens_details":{"cached_tokens":100},
                "completion_tokens":50}}"#,
            [200, 100, 0, 0, 50],
        ),
        (
            r#"{"usage":{"input_tokens":300,"input_tokens_details":{"cached_tokens":100},
                "output_tokens":50}}"#,
            [200, 100, 0, 0, 50],
        ),
        // F3 to F6
        (
            r#"{"usage":{"input_tokens":300,"cache_read_input_tokens":60,
                "cache_creation_input_tokens":40,
                "cache_creation":{"ephemeral_5m_input_tokens":40},"output_tokens":25}}"#,
            [300, 60, 40, 0, 25],
        ),
        (
            r#"{"usage":{"input_tokens":300,"cache_read_input_tokens":60,
                "cache_creation":{"ephemeral_1h_input_tokens":70},"output_tokens":25}}"#,
            [300, 60, 0, 70, 25],
        ),
        (
            r#"{"usage":{"input_tokens":300,"cache_read_input_tokens":60,
                "cache_creation_input_tokens":110,
                "cache_creation":{"ephemeral_5m_input_tokens":40,
                "ephemeral_1h_input_tokens":70},"output_tokens":25}}"#,
            [300, 60, 40, 70, 25],
        ),
        (
            r#"{"usage":{"input_tokens":300,"cache_read_input_tokens":60,
                "cache_creation_input_tokens":110,"output_tokens":25}}"#,
            [300, 60, 110, 0, 25],
        ),
        // The rest of a split that names too little was written for five minutes.
        (
            r#"{"usage":{"input_tokens":1,"cache_creation_input_tokens":110,
                "cache_creation":{"ephemeral_1h_input_tokens":70},"output_tokens":1}}"#,
            [1, 0, 40, 70, 1],
        ),
    ];
    for (answer, expected) in cases {
        let usage = read(answer);
        assert_eq!(buckets(&usage), expected, "{answer}");
        assert_eq!(usage.provenance, Provenance::Reported);
        assert!(usage.flags.is_empty(), "{answer} {:?}", usage.flags);
    }
}

/// Answers with odd counts, their buckets, and the doubt that is noted.
const ODD: [(&str, [u32; 5], UsageFlags); 8] = [
    (
        r#"{"usage":{"prompt_tokens":4,"prompt_tokens_details":{"cached_tokens":9},
                "completion_tokens":2}}"#,
        [4, 0, 0, 0, 2],
        UsageFlags::PARTS_EXCEED_INPUT,
    ),
    (
        r#"{"usageMetadata":{"promptTokenCount":4,"cachedContentTokenCount":9,
                "candidatesTokenCount":2}}"#,
        [4, 0, 0, 0, 2],
        UsageFlags::PARTS_EXCEED_INPUT,
    ),
    (
        r#"{"usage":{"prompt_tokens":4,"completion_tokens":2,
                "completion_tokens_details":{"audio_tokens":3}}}"#,
        [4, 0, 0, 0, 0],
        UsageFlags::PARTS_EXCEED_OUTPUT,
    ),
    (
        r#"{"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":60}}"#,
        [4, 0, 0, 0, 2],
        UsageFlags::TOTAL_MISMATCH,
    ),
    (
        r#"{"usage":{"input_tokens":4,"cache_creation_input_tokens":1,
                "cache_creation":{"ephemeral_1h_input_tokens":7},"output_tokens":2}}"#,
        [4, 0, 0, 7, 2],
        UsageFlags::SPLIT_EXCEEDS_WRITES,
    ),
    (
        r#"{"usage":{"prompt_tokens":100,"cache_read_input_tokens":60,
                "cache_creation_input_tokens":30,"completion_tokens":2}}"#,
        [40, 60, 0, 0, 2],
        UsageFlags::AMBIGUOUS,
    ),
    (r#"{"usage":{"prompt_tokens":4}}"#, [4, 0, 0, 0, 0], UsageFlags::OUTPUT_MISSING),
    (r#"{"usage":{"completion_tokens":4}}"#, [0, 0, 0, 0, 4], UsageFlags::INPUT_MISSING),
];

/// The same of counts that cannot be: they are as if they were not there.
const IMPOSSIBLE: [(&str, [u32; 5], UsageFlags); 8] = [
    (
        r#"{"usage":{"prompt_tokens":-5,"completion_tokens":2}}"#,
        [0, 0, 0, 0, 2],
        UsageFlags::NEGATIVE,
    ),
    (
        r#"{"usage":{"prompt_tokens":5.9,"completion_tokens":2}}"#,
        [0, 0, 0, 0, 2],
        UsageFlags::FRACTION,
    ),
    (
        r#"{"usage":{"prompt_tokens":"7","completion_tokens":2}}"#,
        [0, 0, 0, 0, 2],
        UsageFlags::NOT_A_NUMBER,
    ),
    (
        r#"{"usage":{"prompt_tokens":[1],"completion_tokens":2}}"#,
        [0, 0, 0, 0, 2],
        UsageFlags::NOT_A_NUMBER,
    ),
    (
        r#"{"usage":{"prompt_tokens":true,"completion_tokens":2}}"#,
        [0, 0, 0, 0, 2],
        UsageFlags::NOT_A_NUMBER,
    ),
    (
        r#"{"usage":{"prompt_tokens":5000000000,"completion_tokens":2}}"#,
        [0, 0, 0, 0, 2],
        UsageFlags::TOO_LARGE,
    ),
    (
        r#"{"usage":{"prompt_tokens":1e400,"completion_tokens":2}}"#,
        [0, 0, 0, 0, 2],
        UsageFlags::TOO_LARGE,
    ),
    (
        r#"{"usage":{"input_tokens":4,"cache_read_input_tokens":-1,"output_tokens":2}}"#,
        [4, 0, 0, 0, 2],
        UsageFlags::NEGATIVE,
    ),
];

#[test]
fn odd_counts_are_cut_and_flagged() {
    for (answer, expected, flag) in ODD {
        let usage = read(answer);
        assert_eq!(buckets(&usage), expected, "{answer}");
        assert!(usage.flags.contains(flag), "{answer} {:?}", usage.flags);
        assert_eq!(usage.provenance, Provenance::Reported);
    }
    assert_eq!(read(r#"{"usage":{"prompt_tokens":5.0,"completion_tokens":2e0}}"#).input_fresh, 5);
    assert!(read(r#"{"usage":{"prompt_tokens":5.0,"completion_tokens":2e0}}"#).flags.is_empty());
}

#[test]
fn a_report_with_a_count_that_cannot_be_is_no_report() {
    for (answer, expected, flag) in IMPOSSIBLE {
        let usage = read(answer);
        assert_eq!(buckets(&usage), expected, "{answer}");
        assert!(usage.flags.contains(flag), "{answer} {:?}", usage.flags);
        assert!(usage.flags.contains(UsageFlags::IMPOSSIBLE), "{answer}");
        assert_eq!(usage.provenance, Provenance::Estimated, "{answer}");
    }
    let both = read(r#"{"usage":{"prompt_tokens":-5,"completion_tokens":1.5}}"#);
    assert_eq!(both.provenance, Provenance::Missing);
    assert!(both.flags.contains(UsageFlags::IMPOSSIBLE));
    // Nothing is priced by these.
    for field in ["\"total_tokens\":-3", "\"completion_tokens_details\":{\"reasoning_tokens\":1.5}"]
    {
        let usage =
            read(&format!(r#"{{"usage":{{"prompt_tokens":1,"completion_tokens":2,{field}}}}}"#));
        assert_eq!(usage.provenance, Provenance::Reported, "{field}");
        assert!(!usage.flags.contains(UsageFlags::IMPOSSIBLE), "{field}");
    }
    let most = read(r#"{"usage":{"prompt_tokens":100000000,"completion_tokens":2}}"#);
    assert_eq!((most.input_fresh, most.provenance), (100_000_000, Provenance::Reported));
}

/// A running total that was none does not spoil the count that follows it, nor the other way.
#[test]
fn the_last_report_of_a_field_is_the_one_that_can_be_or_cannot() {
    let report = |count: &str| {
        let mut usage = ReportedUsage::default();
        usage.set(UsageField::Input, 7);
        usage.read(UsageField::Output, count.as_bytes());
        usage
    };
    for (first, second, provenance, output) in
        [("-1", "5", Provenance::Reported, 5), ("5", "-1", Provenance::Estimated, 0)]
    {
        let mut usage = report(first);
        usage.update(&report(second));
        let usage = envelope(&usage);
        assert_eq!((usage.provenance, usage.output), (provenance, output), "{first} {second}");
    }
}

#[test]
fn audio_lies_inside_and_is_taken_out() {
    let usage = read(
        r#"{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":20,
                "audio_tokens":30},
        "completion_tokens":50,"completion_tokens_details":{"audio_tokens":40,
                "reasoning_tokens":5},"total_tokens":150}}"#,
    );
    assert_eq!(buckets(&usage), [50, 20, 0, 0, 10]);
    assert_eq!((usage.audio_in, usage.audio_out, usage.reasoning_of_output), (30, 40, 5));
    assert_eq!(usage.input_total(), 100);
    assert!(usage.flags.is_empty());
}

#[test]
fn nothing_reported_is_missing_not_zero() {
    for answer in [
        "{}",
        r#"{"usage":null}"#,
        r#"{"usage":{}}"#,
        r#"{"usage":{"prompt_tokens":null,"completion_tokens":null}}"#,
        r#"{"usage":"prompt_tokens"}"#,
        r#"{"choices":[{"message":{"content":"{\"usage\":{\"prompt_tokens\":9}}"}}]}"#,
        r#"{"choices":[{"message":{"usage":{"prompt_tokens":9}}}]}"#,
    ] {
        assert_eq!(read(answer).provenance, Provenance::Missing, "{answer}");
    }
    let zero = read(r#"{"usage":{"prompt_tokens":0,"completion_tokens":0}}"#);
    assert_eq!(zero.provenance, Provenance::Reported);
}

#[test]
fn content_makes_an_absent_output_a_missing_one_and_a_zero_a_doubtful_one() {
    for (usage, content, provenance, flags) in [
        (r#"{"prompt_tokens":4}"#, false, Provenance::Reported, UsageFlags::OUTPUT_MISSING),
        (r#"{"prompt_tokens":4}"#, true, Provenance::Estimated, UsageFlags::OUTPUT_MISSING),
        (
            r#"{"prompt_tokens":4,"completion_tokens":0}"#,
            true,
            Provenance::Reported,
            UsageFlags::ZERO_WITH_CONTENT,
        ),
        ("{}", true, Provenance::Missing, UsageFlags::default()),
    ] {
        let mut read = read(&format!("{{\"usage\":{usage}}}"));
        if content {
            read.note_content();
        }
        assert_eq!((read.provenance, read.flags), (provenance, flags), "{usage}");
    }
}

#[test]
fn a_later_report_replaces_only_what_it_names() {
    let mut usage = ReportedUsage::default();
    usage.set(UsageField::Input, 77);
    usage.set(UsageField::Output, 2);
    let mut later = ReportedUsage::default();
    later.set(UsageField::Output, 5);
    usage.update(&later);
    assert_eq!(usage.count(UsageField::Input), Some(77));
    assert_eq!(usage.count(UsageField::Output), Some(5));
    assert_eq!(usage.count(UsageField::GeminiToolUse), None);
}
