use super::*;

#[test]
fn five_failures_in_a_minute_open_it_for_half_a_minute() {
    let rules = BreakerRules::default();
    let mut word = 0;
    for n in 1..=5_u64 {
        assert_eq!(lets(word, n * 10_000, &rules), Lets::All, "{n}");
        word = failed(word, false, n * 10_000, &rules).unwrap();
    }
    assert_eq!(lets(word, 50_000, &rules), Lets::Nothing);
    assert_eq!(lets(word, 79_999, &rules), Lets::Nothing);
    assert_eq!(lets(word, 80_000, &rules), Lets::One);
}
