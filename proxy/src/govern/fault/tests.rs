use super::*;

#[test]
fn an_errors_status_decides_its_row() {
    for (status, kind) in [
        (101, Kind::Redirected),
        (302, Kind::Redirected),
        (400, Kind::Rejected),
        (401, Kind::Unauthorized),
        (402, Kind::Exhausted),
        (403, Kind::Forbidden),
        (404, Kind::Mismatch),
        (405, Kind::Mismatch),
        (408, Kind::Rejected),
        (409, Kind::Rejected),
        (413, Kind::Rejected),
        (422, Kind::Rejected),
        (429, Kind::Busy),
        (500, Kind::Busy),
        (501, Kind::Mismatch),
        (502, Kind::Doubtful),
        (503, Kind::Busy),
        (504, Kind::Doubtful),
        (508, Kind::Mismatch),
        (520, Kind::Doubtful),
        (529, Kind::Busy),
        (599, Kind::Doubtful),
    ] {
        let fault = Fault::of(&Answered { status, ..Answered::default() });
        assert_eq!((fault.kind, fault.status, fault.within), (kind, status, false), "{status}");
    }
}

/// An error inside a 200, by its type.
fn within(kind: &str) -> Fault {
    Fault::of(&Answered { status: 200, kind: kind.as_bytes(), ..Answered::default() })
}

#[test]
fn an_error_inside_a_200_counts_as_the_status_it_stands_for() {
    for (kind, status, row) in [
        ("overloaded_error", 529, Kind::Busy),
        ("rate_limit_error", 429, Kind::Busy),
        ("api_error", 500, Kind::Busy),
        ("authentication_error", 401, Kind::Unauthorized),
        ("permission_error", 403, Kind::Forbidden),
        ("invalid_request_error", 400, Kind::Rejected),
        ("not_found_error", 404, Kind::Mismatch),
        ("request_too_large", 413, Kind::Rejected),
        ("billing_error", 402, Kind::Exhausted),
        ("timeout_error", 504, Kind::Doubtful),
        ("insufficient_quota", 429, Kind::Exhausted),
        ("rate_limit_exceeded", 429, Kind::Busy),
        ("tokens", 429, Kind::Busy),
        ("server_error", 500, Kind::Busy),
        ("service_unavailable", 503, Kind::Busy),
        ("invalid_api_key", 401, Kind::Unauthorized),
        ("context_length_exceeded", 400, Kind::Rejected),
        ("RESOURCE_EXHAUSTED", 429, Kind::Busy),
        ("UNAVAILABLE", 503, Kind::Busy),
        ("DEADLINE_EXCEEDED", 504, Kind::Doubtful),
        ("PERMISSION_DENIED", 403, Kind::Forbidden),
        ("Overloaded_Error", 529, Kind::Busy),
        ("", 502, Kind::Invalid),
        ("overloaded_error2", 502, Kind::Invalid),
        ("something", 502, Kind::Invalid),
    ] {
        let fault = within(kind);
        assert_eq!((fault.status, fault.kind, fault.within), (status, row, true), "{kind}");
    }
}

#[test]
fn a_status_in_digits_counts_before_a_code_and_that_before_a_type() {
    for (code, kind, state, status) in [
        ("rate_limit_exceeded", "invalid_request_error", "", 429),
        ("context_length_exceeded", "server_error", "", 400),
        ("429", "", "", 429),
        ("429", "api_error", "", 429),
        ("503", "", "UNAVAILABLE", 503),
        ("404", "strange", "stranger", 404),
        ("200", "", "", 502),
        ("999", "", "", 502),
        ("+42", "", "", 502),
        ("4290", "", "", 502),
        ("null", "server_error", "", 500),
    ] {
        let (code, kind, state) = (code.as_bytes(), kind.as_bytes(), state.as_bytes());
        let fault = Fault::of(&Answered { status: 200, code, kind, state, ..Answered::default() });
        assert_eq!(fault.status, status, "{code:?} {kind:?} {state:?}");
    }
}

#[test]
fn what_an_error_says_can_move_it_to_another_row() {
    for (status, code, kind, text, row) in [
        (429, "insufficient_quota", "insufficient_quota", "", Kind::Exhausted),
        (429, "", "insufficient_quota", "", Kind::Exhausted),
        (429, "rate_limit_exceeded", "requests", "", Kind::Busy),
        (429, "billing_hard_limit_reached", "", "", Kind::Exhausted),
        (400, "", "invalid_request_error", "Your credit balance is too low to", Kind::Exhausted),
        (400, "unsupported_parameter", "invalid_request_error", "", Kind::Mismatch),
        (400, "unsupported_value", "", "", Kind::Mismatch),
        (400, "", "", "thinking is Not Supported by this model", Kind::Mismatch),
        (400, "", "", "model does not support image input", Kind::Mismatch),
        (400, "", "", "missing reasoning_content in assistant message", Kind::Mismatch),
        (400, "context_length_exceeded", "invalid_request_error", "too long", Kind::Rejected),
        (400, "", "", "supported", Kind::Rejected),
        (403, "model_not_found", "", "", Kind::Mismatch),
        (403, "", "", "Project `p` does not have access to model `m`", Kind::Mismatch),
        (403, "", "", "Your chosen model requires moderation", Kind::Mismatch),
        (403, "model_not_allowed", "", "", Kind::Mismatch),
        (403, "", "permission_error", "This API key may not use this model.", Kind::Mismatch),
        (403, "", "permission_error", "", Kind::Forbidden),
        (404, "model_not_found", "", "", Kind::Mismatch),
        (422, "unsupported_parameter", "", "", Kind::Rejected),
        (500, "", "", "not supported", Kind::Busy),
        (413, "", "request_too_large", "", Kind::Rejected),
    ] {
        let (code, kind) = (code.as_bytes(), kind.as_bytes());
        let text = text.as_bytes();
        let fault = Fault::of(&Answered { status, code, kind, text, ..Answered::default() });
        assert_eq!((fault.kind, fault.status), (row, status), "{status} {text:?}");
    }
}

#[test]
fn usage_in_an_error_makes_it_final_whatever_its_status() {
    for status in [200, 400, 402, 404, 429, 500, 502, 503, 504, 529] {
        let fault = Fault::of(&Answered { status, usage: true, ..Answered::default() });
        assert_eq!(fault.kind, Kind::Billed, "{status}");
        assert_eq!(fault.status, if status == 200 { 502 } else { status });
        let row = AttemptEnd::Fault(fault).row();
        assert_eq!((row.again, row.next, row.seen), (May::No, May::No, Seen::Verbatim));
    }
    let kind = b"overloaded_error".as_slice();
    let fault = Fault::of(&Answered { status: 200, kind, usage: true, ..Answered::default() });
    assert_eq!((fault.kind, fault.status), (Kind::Billed, 529));
    assert_eq!(AttemptEnd::Fault(fault).row().next, May::No);
}

#[test]
fn only_the_beginning_of_a_text_is_searched() {
    let row = |padding: usize| {
        let text = format!("{}not supported", " ".repeat(padding));
        let text = text.as_bytes();
        Fault::of(&Answered { status: 400, text, ..Answered::default() }).kind
    };
    assert_eq!(row(TEXT_MAX - "not supported".len()), Kind::Mismatch);
    assert_eq!(row(TEXT_MAX - "not supported".len() + 1), Kind::Rejected);
}

#[test]
fn statuses_that_are_no_answer_are_invalid() {
    for status in [100, 102, 103, 204, 205, 206] {
        let fault = Fault::of(&Answered { status, ..Answered::default() });
        assert_eq!(fault.kind, Kind::Invalid, "{status}");
        let refused = Seen::Refusal(Refusal::UpstreamInvalid);
        assert_eq!(AttemptEnd::Fault(fault).row().seen, refused);
    }
}

/// What the page calls each row, and the end it is about. Those that differ by status are given as
/// a 5xx.
fn rows() -> Vec<(&'static str, AttemptEnd)> {
    let fault = |kind, status| {
        AttemptEnd::Fault(Fault { kind, status, within: false, retry_after_ms: None })
    };
    vec![
        ("unreachable", AttemptEnd::Unreachable),
        ("stale", AttemptEnd::Stale),
        ("half_sent", AttemptEnd::Cut { sent: false }),
        ("cut", AttemptEnd::Cut { sent: true }),
        ("stalled", AttemptEnd::Timeout { sent: false }),
        ("timeout", AttemptEnd::Timeout { sent: true }),
        ("busy", fault(Kind::Busy, 503)),
        ("billed", fault(Kind::Billed, 503)),
        ("doubtful", fault(Kind::Doubtful, 504)),
        ("redirected", fault(Kind::Redirected, 302)),
        ("exhausted", fault(Kind::Exhausted, 402)),
        ("forbidden", fault(Kind::Forbidden, 403)),
        ("unauthorized", fault(Kind::Unauthorized, 401)),
        ("own_key", fault(Kind::OwnKey, 401)),
        ("mismatch", fault(Kind::Mismatch, 404)),
        ("rejected", fault(Kind::Rejected, 400)),
        ("invalid", AttemptEnd::Fault(Fault::INVALID)),
        ("empty", AttemptEnd::Fault(Fault::EMPTY)),
    ]
}

#[test]
fn the_page_about_the_walk_has_the_table() {
    let page = include_str!("../../../../docs/reference/walk.md");
    let lines = page.lines().filter(|line| line.starts_with("| `"));
    let found: Vec<Vec<&str>> =
        lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let may = |may| match may {
        May::Yes => "yes",
        May::No => "no",
        May::IfBilledTwice => "if billed twice",
    };
    let health = |health| match health {
        Health::Unknown => "",
        Health::Well => "well",
        Health::Ill => "ill",
    };
    let wanted: Vec<[String; 6]> = rows()
        .into_iter()
        .map(|(name, end)| {
            let row = end.row();
            let by_status = ["busy", "billed"].contains(&name);
            let credential = match (row.cools, by_status) {
                (true, _) => "cools",
                (false, true) => "ill if 5xx",
                (false, false) => health(row.credential),
            };
            let seen = match row.seen {
                Seen::Verbatim => "the answer".to_owned(),
                Seen::Reworded => "the answer, with our words in `error.message`".to_owned(),
                Seen::Refusal(refusal) => format!("`{}`", refusal.face().code),
            };
            let [again, next] = [may(row.again), may(row.next)].map(str::to_owned);
            let [host, credential] = [health(row.host), credential].map(str::to_owned);
            [format!("`{name}`"), again, next, host, credential, seen]
        })
        .collect();
    let shown: Vec<[String; 6]> =
        found.iter().map(|row| [0, 2, 3, 4, 5, 6].map(|cell| row[cell].to_owned())).collect();
    assert_eq!(shown, wanted);
}
