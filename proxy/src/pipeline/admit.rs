//! The layers that need no plan: what the head and the counts of the body decide.

use super::held::Held;
use crate::exchange::call::{Call, Dialect, Route};
use crate::exchange::demand::{Demand, Figure};
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;
use crate::govern::layer::Layer;
use crate::govern::{Governance, Passing};
use crate::io::Io;
use crate::shard::Shard;
use codec::json::{Count, CountField, RequestSpans};

/// Lets a call in, or says why not.
pub(super) fn gate<I: Io>(
    shard: &Shard<I>,
    route: Route,
    call: &Call<'_>,
    held: &mut Held,
    now: Now,
) -> Result<(), Refusal> {
    if shard.draining.get() {
        return Err(Refusal::ShuttingDown);
    }
    if route.is_free() {
        return Passing::default().admit(call, &mut held.passing, now);
    }
    Governance::default().admit(call, &mut held.layers, now)
}

/// What a body asks for, as far as money is concerned. A cap that providers of the dialect do not
/// know would hold little and stop nothing: it counts as absent.
pub(super) fn demand(spans: &RequestSpans, dialect: Dialect) -> Demand {
    let text = Demand {
        ascii: spans.estimate.ascii,
        non_ascii: spans.estimate.non_ascii,
        items: spans.estimate.items,
        ..Demand::default()
    };
    match dialect {
        Dialect::Chat => Demand {
            max_completion_tokens: figure(spans.max_completion_tokens),
            max_tokens: figure(spans.max_tokens),
            answers: figure(spans.n),
            ..text
        },
        Dialect::Messages => Demand { max_tokens: figure(spans.max_tokens), ..text },
        Dialect::Responses => Demand { max_output_tokens: figure(spans.max_output_tokens), ..text },
        // Its cap lies deeper than the scan looks.
        Dialect::Gemini => text,
    }
}

fn figure(field: Option<CountField>) -> Figure {
    match field.map(|field| field.count) {
        None | Some(Count::Null) => Figure::Absent,
        Some(Count::Value(n)) => Figure::Whole(n),
        Some(Count::Negative | Count::NotWhole | Count::TooLarge | Count::NotNumber) => {
            Figure::Unclear
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::json::{RequestScan, TextEstimate};

    fn demand_in(dialect: Dialect, body: &str) -> Demand {
        let spans = RequestScan::new().finish(body.as_bytes());
        demand(&spans.unwrap_or_else(|error| panic!("{body}: {error:?}")), dialect)
    }

    fn demand_of(body: &str) -> Demand {
        demand_in(Dialect::Chat, body)
    }

    #[test]
    fn only_the_caps_of_the_dialect_count() {
        let body = r#"{"model":"m","max_tokens":1,"max_completion_tokens":2,
            "max_output_tokens":3,"n":4}"#;
        let (none, figure) = (Figure::Absent, Figure::Whole);
        for (dialect, caps) in [
            (Dialect::Chat, [figure(1), figure(2), none, figure(4)]),
            (Dialect::Messages, [figure(1), none, none, none]),
            (Dialect::Responses, [none, none, figure(3), none]),
            (Dialect::Gemini, [none; 4]),
        ] {
            let Demand { max_tokens, max_completion_tokens, max_output_tokens, answers, .. } =
                demand_in(dialect, body);
            let found = [max_tokens, max_completion_tokens, max_output_tokens, answers];
            assert_eq!(found, caps, "{dialect:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_unclear_and_what_is_null_is_absent() {
        let nothing = demand_of(r#"{"model":"m"}"#);
        assert_eq!(nothing, Demand::default());
        for (value, wanted) in [
            ("null", Figure::Absent),
            ("0", Figure::Whole(0)),
            ("17", Figure::Whole(17)),
            ("-1", Figure::Unclear),
            ("1.5", Figure::Unclear),
            ("99999999999999999999", Figure::Unclear),
            ("\"9\"", Figure::Unclear),
        ] {
            let body = format!(
                r#"{{"model":"m","max_tokens":{value},"max_completion_tokens":{value},
                    "max_output_tokens":{value},"n":{value}}}"#
            );
            let demand = demand_of(&body);
            let all = [demand.max_tokens, demand.max_completion_tokens, demand.answers];
            assert_eq!(all, [wanted; 3], "{value}");
            assert_eq!(demand.max_output_tokens, Figure::Absent, "not a cap of chat");
        }
        let TextEstimate { ascii, .. } = TextEstimate::default();
        let text = demand_of(r#"{"model":"m","messages":[{"role":"user","content":"abcd"}]}"#);
        assert!(text.ascii > ascii && text.items == 0);
    }
}
