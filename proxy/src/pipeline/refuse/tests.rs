use super::*;
use crate::exchange::budget::Scope;
use crate::exchange::time::UnixMs;
use crate::exchange::window::Period;
use codec::trace_context::LINE;

fn all() -> Vec<Refusal> {
    vec![
        Refusal::BadHead { status: 400, why: "malformed request line" },
        Refusal::BadHead { status: 431, why: "head too large" },
        Refusal::BadHead { status: 501, why: "transfer coding not supported" },
        Refusal::BadHead { status: 505, why: "HTTP version not supported" },
        Refusal::RequestTimeout,
        Refusal::LengthRequired,
        Refusal::TooLarge,
        Refusal::UnsupportedMedia { why: "no coding" },
        Refusal::ExpectationFailed,
        Refusal::UpgradeRequired,
        Refusal::NotFound,
        Refusal::MethodNotAllowed { allow: "POST" },
        Refusal::NotImplemented,
        Refusal::InvalidRequest { param: Some("model"), why: "model must be a string" },
        Refusal::ModelMissing,
        Refusal::InvalidApiKey,
        Refusal::KeyRevoked,
        Refusal::KeyDisabled,
        Refusal::KeyExpired,
        Refusal::ModelNotAllowed,
        Refusal::RateLimited { retry_after_ms: 1 },
        Refusal::ConcurrencyLimited,
        Refusal::BudgetExceeded { scope: Scope::Key, period: Period::Month, resets: UnixMs(0) },
        Refusal::BudgetReserved { retry_after_s: 5 },
        Refusal::PriceUnknown,
        Refusal::ModelNotFound,
        Refusal::ModelUnavailable,
        Refusal::NodeBusy,
        Refusal::ShuttingDown,
        Refusal::UpstreamUnreachable,
        Refusal::UpstreamTimeout,
        Refusal::UpstreamCut,
        Refusal::UpstreamInvalid,
        Refusal::EmptyCompletion,
        Refusal::UpstreamAuth,
        Refusal::UpstreamUnavailable { retry_after_s: 1 },
        Refusal::LoopDetected,
        Refusal::Internal,
    ]
}

fn origin(dialect: Dialect) -> Origin {
    Origin {
        id: RequestId([7; 16]),
        route: None,
        dialect,
        is_head: false,
        close: true,
        is_10: false,
    }
}

fn written(refusal: Refusal, dialect: Dialect) -> (String, serde_json::Value) {
    let mut out = Vec::new();
    let told = Told { caller_id: Some(b"caller-1"), trace: LINE };
    write(&mut out, refusal, &origin(dialect), told);
    let text = String::from_utf8(out).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap();
    assert_eq!(length.parse::<usize>().unwrap(), body.len(), "{head}");
    (head.to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn every_refusal_has_a_face_a_counter_and_valid_json_in_every_dialect() {
    for refusal in all() {
        for dialect in [Dialect::Chat, Dialect::Messages, Dialect::Responses, Dialect::Gemini] {
            let face = refusal.face_in(dialect);
            assert!(crate::exchange::codes::CODES.contains(&face.code), "{}", face.code);
            let (head, body) = written(refusal, dialect);
            let status = format!("HTTP/1.1 {} ", face.status);
            assert!(head.starts_with(&status), "{head}");
            match dialect {
                Dialect::Chat | Dialect::Responses => {
                    assert_eq!(body["error"]["code"], face.code);
                    assert_eq!(body["error"]["message"], face.text);
                }
                Dialect::Messages => {
                    assert_eq!(body["type"], "error");
                    assert_eq!(body["error"]["message"], face.text);
                    assert_eq!(body["request_id"], RequestId([7; 16]).to_string());
                }
                Dialect::Gemini => assert_eq!(body["error"]["code"], face.status),
            }
        }
    }
}

#[test]
fn only_a_defect_of_ours_is_500() {
    for refusal in all().into_iter().filter(|r| *r != Refusal::Internal) {
        assert_ne!(refusal.face().status, 500, "{refusal:?}");
    }
}

#[test]
fn texts_below_500_have_no_digits() {
    for face in all().into_iter().map(Refusal::face).filter(|face| face.status < 500) {
        assert!(!face.text.bytes().any(|b| b.is_ascii_digit()), "{}", face.text);
    }
}

#[test]
fn fields_say_what_the_client_must_know() {
    let (head, _) = written(Refusal::NodeBusy, Dialect::Chat);
    assert!(head.contains("\r\nretry-after: 1\r\n"), "{head}");
    let (head, _) = written(Refusal::NotImplemented, Dialect::Chat);
    assert!(head.contains("\r\nx-should-retry: false\r\n"), "{head}");
    let (head, _) = written(Refusal::MethodNotAllowed { allow: "POST" }, Dialect::Chat);
    assert!(head.contains("\r\nallow: POST\r\n"), "{head}");
    let (head, _) = written(Refusal::UpgradeRequired, Dialect::Responses);
    assert!(head.contains("\r\nupgrade: HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nx-request-id: caller-1\r\n"), "{head}");
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    assert!(head.contains(str::from_utf8(LINE).unwrap()), "{head}");
}

#[test]
fn an_answer_to_head_has_the_length_and_no_body() {
    let mut out = Vec::new();
    let to = Origin { is_head: true, ..origin(Dialect::Chat) };
    write(&mut out, Refusal::NotFound, &to, Told::default());
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with("\r\n\r\n") && !text.contains("content-length: 0"), "{text}");
}
