use super::*;

#[test]
fn the_wait_doubles_to_its_most_and_half_of_it_is_chance() {
    let rules = RetryRules::default();
    for (tries, least, most) in
        [(1, 250, 500), (2, 500, 1_000), (4, 2_000, 4_000), (5, 2_500, 5_000), (9, 2_500, 5_000)]
    {
        assert_eq!(backoff_ms(tries, 0, &rules), least, "{tries}");
        let highest = backoff_ms(tries, u32::MAX, &rules);
        assert!(highest < most && highest + 1 >= most, "{tries} {highest}");
    }
}
