//! Answers to the client.

use crate::{BODY, COMPLETION, call, ok, post};
use gateway_tests::answer::Framed;
use gateway_tests::scenario::Scenario;
use gateway_tests::transports;

#[test]
fn a_call_goes_through_and_leaves_a_record() {
    let scenario = Scenario::plain(call(post("", BODY)), ok().as_bytes());
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.framed), (200, Framed::Length));
        assert_eq!(answer.text(), COMPLETION);
        assert_eq!(outcome.asked().text(), BODY);
        assert_eq!(outcome.endings(), ["succeeded"]);
        let record = &outcome.records[0];
        assert_eq!((record.tokens[0], record.tokens[4], record.cost_picousd), (1, 2, 210));
    });
}
