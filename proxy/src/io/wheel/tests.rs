use super::*;

fn at(ticks: u64) -> Duration {
    TICK * ticks as u32
}

#[test]
fn never_early_and_at_most_two_ticks_late() {
    for after_ms in [0u64, 1, 99, 100, 101, 999, 1_000, 51_100, 51_200, 60_000, 300_000] {
        for start in [0u64, 1, 511, 512, 700] {
            let wheel = Wheel::new();
            wheel.advance(at(start));
            let timer = wheel.timer();
            timer.arm(Duration::from_millis(after_ms));
            let due_tick = start + after_ms.div_ceil(100);
            let mut fired_at = None;
            for tick in start..=due_tick + 3 {
                wheel.advance(at(tick));
                if timer.fired() {
                    fired_at = Some(tick);
                    break;
                }
            }
            let fired_at = fired_at.expect("fires");
            assert!(fired_at * 100 >= start * 100 + after_ms, "{after_ms} ms from {start}: early");
            assert!(fired_at <= due_tick + 2, "{after_ms} ms from {start}: at {fired_at}");
        }
    }
}

#[test]
fn re_arming_later_and_earlier_counts_from_the_last_call() {
    let wheel = Wheel::new();
    let timer = wheel.timer();
    timer.arm(at(3));
    wheel.advance(at(2));
    timer.arm(at(10));
    wheel.advance(at(11));
    assert!(!timer.fired());
    timer.arm(at(2));
    wheel.advance(at(14));
    assert!(timer.fired());
    timer.arm(at(600));
    timer.arm(at(1));
    wheel.advance(at(16));
    assert!(timer.fired(), "an earlier deadline wins over the slot filed first");
}

#[test]
fn disarmed_and_dropped_timers_stay_silent_and_their_places_are_used_again() {
    let wheel = Wheel::new();
    let kept = wheel.timer();
    kept.arm(at(1));
    kept.disarm();
    for _ in 0..100 {
        let timer = wheel.timer();
        timer.arm(at(2));
    }
    wheel.advance(at(20));
    assert!(!kept.fired());
    assert_eq!(wheel.timers.borrow().free.len() + 1, wheel.timers.borrow().entries.len());
    let before = wheel.timers.borrow().entries.len();
    let again: Vec<_> = (0..100).map(|_| wheel.timer()).collect();
    assert_eq!(wheel.timers.borrow().entries.len(), before.max(again.len() + 1));
}

#[test]
fn connections_that_come_and_go_take_no_more_places_than_are_open() {
    let wheel = Wheel::new();
    let mut fired = 0;
    for tick in 0..2_000 {
        wheel.advance(at(tick));
        let open: Vec<Timer> = (0..5).map(|_| wheel.timer()).collect();
        for (nth, timer) in open.iter().enumerate() {
            timer.arm(at(50 * nth as u64 + 1));
        }
        wheel.advance(at(tick + 1));
        fired += open.iter().filter(|timer| timer.fired()).count();
    }
    assert_eq!(wheel.timers.borrow().entries.len(), 5);
    assert_eq!(fired, 0, "none was old enough");
}

#[test]
fn a_place_used_again_is_not_fired_by_its_former_owner() {
    let wheel = Wheel::new();
    let first = wheel.timer();
    first.arm(at(5));
    drop(first);
    wheel.advance(at(7));
    let second = wheel.timer();
    second.arm(at(400));
    wheel.advance(at(300));
    assert!(!second.fired());
}

#[test]
fn a_thread_that_was_away_for_many_turns_fires_what_is_due_and_keeps_the_rest() {
    let wheel = Wheel::new();
    let due = wheel.timer();
    let later = wheel.timer();
    due.arm(at(100));
    later.arm(at(6_000));
    wheel.advance(at(5_000));
    assert!(due.fired());
    assert!(!later.fired());
    wheel.advance(at(6_003));
    assert!(later.fired());
}

#[test]
fn only_idle_waits_are_told_early() {
    let wheel = Wheel::new();
    let [idle, disarmed, busy, later] = std::array::from_fn(|_| wheel.timer());
    idle.arm_idle(at(600));
    disarmed.arm_idle(at(5));
    disarmed.disarm();
    busy.arm(at(5));
    later.arm_idle(at(5));
    // Armed again for something else, it is no idle wait any more.
    later.arm(at(5));
    wheel.fire_idle();
    assert!(idle.fired() && !disarmed.fired() && !busy.fired() && !later.fired());
    idle.arm(at(3));
    assert!(!idle.fired());
    wheel.advance(at(8));
    assert!(idle.fired() && !disarmed.fired() && busy.fired() && later.fired());
}

/// Against the plainest thing that does the same: a list that is searched.
#[test]
fn lists_through_the_timers_are_kept_whole() {
    let wheel = Wheel::new();
    let mut open: Vec<(Timer, u64)> = Vec::new();
    let mut random = 0x9e37_79b9_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut now = 0;
    for _ in 0..20_000 {
        match next(6) {
            0 | 1 => {
                let after = next(1_500);
                let timer = wheel.timer();
                timer.arm(at(after));
                open.push((timer, now + after + 1));
            }
            2 if !open.is_empty() => {
                let which = next(open.len() as u64) as usize;
                let after = next(1_500);
                open[which].0.arm(at(after));
                open[which].1 = now + after + 1;
            }
            3 if !open.is_empty() => drop(open.swap_remove(next(open.len() as u64) as usize)),
            _ => {
                let most = if next(200) == 0 { 2_000 } else { 4 };
                now += next(most);
                wheel.advance(at(now));
                for (nth, (timer, due)) in open.iter().enumerate() {
                    assert_eq!(timer.fired(), *due <= now, "{nth} of {} at {now}", open.len());
                }
                open.retain(|(timer, _)| !timer.fired());
            }
        }
    }
    let timers = wheel.timers.borrow();
    assert_eq!(timers.free.len() + open.len(), timers.entries.len());
}
