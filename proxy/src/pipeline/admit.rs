//! The layers that need no plan: what the head and the counts of the body decide.

use super::held::Held;
use crate::exchange::call::Call;
use crate::exchange::demand::{Demand, Figure};
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;
use crate::govern::Governance;
use crate::govern::layer::Layer;
use crate::io::Io;
use crate::shard::Shard;
use codec::json::{Count, CountField, RequestSpans};

/// Lets a call in, or says why not.
pub(super) fn gate<I: Io>(
    shard: &Shard<I>,
    call: &Call<'_>,
    held: &mut Held,
    now: Now,
) -> Result<(), Refusal> {
    if shard.draining.get() {
        return Err(Refusal::ShuttingDown);
    }
    Governance::default().admit(call, &mut held.layers, now)
}

/// What a body asks for, as far as money is concerned.
pub(super) fn demand(spans: &RequestSpans) -> Demand {
    Demand {
        ascii: spans.estimate.ascii,
        non_ascii: spans.estimate.non_ascii,
        items: spans.estimate.items,
        max_completion_tokens: figure(spans.max_completion_tokens),
        max_tokens: figure(spans.max_tokens),
        // A chat provider does not know this cap: it would hold little and stop nothing.
        max_output_tokens: Figure::Absent,
        answers: figure(spans.n),
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

    fn demand_of(body: &str) -> Demand {
        let spans = RequestScan::new().finish(body.as_bytes());
        demand(&spans.unwrap_or_else(|error| panic!("{body}: {error:?}")))
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
