//! Seeds that once failed, named by what was wrong with the gateway. A seed means the same only for
//! as long as the generator does; what it found has a test of its own elsewhere, named here.

use crate::seeds::must_hold;

/// `a_usage_that_breaks_off_is_charged_by_the_rule_and_not_as_reported` in `gateway`.
#[test]
fn an_answer_that_broke_off_inside_its_usage_was_charged_as_reported() {
    must_hold(9);
}

/// `what_a_model_without_a_price_used_is_estimated_all_the_same` in `gateway`.
#[test]
fn the_input_of_a_model_without_a_price_was_estimated_at_nothing() {
    must_hold(4);
}

/// `the_checksum_of_a_coded_stream_may_come_a_while_behind_its_events` in `gateway`.
#[test]
fn a_coded_stream_lost_its_checksum() {
    must_hold(265);
}
