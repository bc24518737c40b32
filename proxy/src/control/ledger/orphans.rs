//! What an exchange costs whose process died after it had been sent upstream.
//!
//! Its head carries since the sending the charge that holds in this case, priced by the shard; a
//! recovery has no price list and needs none. Pure, and the same for its own answer: a crash
//! during recovery may ask again.

use crate::exchange::rules::OrphanRule;
use store::ending::Release;
use store::record::{Head, flag};

/// Charges it, or gives the hold back. Where nothing was held, holding it all means nothing:
/// then what was noted counts.
pub fn charge(rule: OrphanRule, head: &mut Head) {
    let holds = head.windows.iter().any(|window| window.budget_id != 0);
    head.flags &= !(flag::CHARGED_NOTED | flag::CHARGED_HOLD);
    head.release = Release::None;
    match rule {
        OrphanRule::ChargeHold if holds => {
            head.cost_picousd = head.hold_picousd;
            head.set(flag::CHARGED_HOLD);
        }
        OrphanRule::ChargeNoted | OrphanRule::ChargeHold => head.set(flag::CHARGED_NOTED),
        OrphanRule::Release => {
            head.release = Release::Rule;
            head.upstream_cost_picousd = 0;
            head.cost_picousd = 0;
        }
    }
    let above = head.cost_picousd.saturating_sub(head.hold_picousd);
    head.overrun_picousd = if holds { above } else { 0 };
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::record::Window;

    fn sent(cost: u64, hold: u64, budget_id: u32) -> Head {
        let mut head = Head {
            cost_picousd: cost,
            upstream_cost_picousd: 5,
            hold_picousd: hold,
            flags: flag::PRICED,
            ..Head::default()
        };
        head.windows[0] = Window { budget_id, window_id: 1 };
        head
    }

    #[test]
    fn each_rule_says_what_an_orphan_costs() {
        let (noted, hold) = (flag::CHARGED_NOTED, flag::CHARGED_HOLD);
        for (rule, head, cost, overrun, charged, release) in [
            (OrphanRule::ChargeNoted, sent(30, 100, 7), 30, 0, noted, Release::None),
            (OrphanRule::ChargeNoted, sent(130, 100, 7), 130, 30, noted, Release::None),
            (OrphanRule::ChargeNoted, sent(130, 0, 0), 130, 0, noted, Release::None),
            (OrphanRule::ChargeHold, sent(30, 100, 7), 100, 0, hold, Release::None),
            (OrphanRule::ChargeHold, sent(30, 0, 0), 30, 0, noted, Release::None),
            (OrphanRule::Release, sent(30, 100, 7), 0, 0, 0, Release::Rule),
        ] {
            let mut once = head;
            charge(rule, &mut once);
            assert_eq!((once.cost_picousd, once.overrun_picousd), (cost, overrun), "{rule:?}");
            assert_eq!((once.flags, once.release), (flag::PRICED | charged, release), "{rule:?}");
            let upstream = if rule == OrphanRule::Release { 0 } else { 5 };
            assert_eq!(once.upstream_cost_picousd, upstream, "{rule:?}");
            let mut twice = once;
            charge(rule, &mut twice);
            assert_eq!(twice, once, "{rule:?} answers its own answer alike");
        }
    }

    /// A crash between the answer and DONE, and a start with another rule.
    #[test]
    fn a_rule_that_was_changed_meanwhile_leaves_no_trace_of_the_other() {
        let mut head = sent(30, 100, 7);
        charge(OrphanRule::ChargeHold, &mut head);
        charge(OrphanRule::ChargeNoted, &mut head);
        assert!(head.has(flag::CHARGED_NOTED) && !head.has(flag::CHARGED_HOLD));
        charge(OrphanRule::Release, &mut head);
        assert_eq!((head.flags, head.cost_picousd), (flag::PRICED, 0));
        charge(OrphanRule::ChargeNoted, &mut head);
        assert_eq!(head.release, Release::None);
    }
}
