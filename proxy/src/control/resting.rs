//! Who takes no calls now, as lines for an operator: a host or a credential whose breaker opens, a
//! credential that cools, and both again when calls are let through. A call that finds all of its
//! candidates resting has no attempt, so its own record names nobody.
//!
//! It looks once a second and tells what has changed since: what comes and goes within a second is
//! in the metrics alone. Changes no word. Bound: that of [`Trouble::line`].

use super::trouble::{Category, Trouble};
use crate::config::snapshot::Snapshot;
use crate::exchange::breaker::BreakerWord;
use crate::exchange::time::MonoNs;
use crate::govern::breaker::{Phase, phase};

const NS_PER_MS: u64 = 1_000_000;
const MS_PER_S: u64 = 1_000;

/// What an operator has to know of a host or a credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    /// It takes calls.
    #[default]
    None,
    /// It is not asked for so many seconds: it has said so.
    Cools,
    /// Its breaker is open.
    Open,
}

/// Who rested at the last look: of each provider the host, then its credentials.
#[derive(Debug, Default)]
pub struct Resting {
    known: Vec<Rest>,
}

impl Resting {
    /// Looks at every host and credential, and tells what has changed.
    pub fn look(
        &mut self,
        snapshot: &Snapshot,
        now: MonoNs,
        trouble: &mut Trouble,
        tell: &mut impl FnMut(&str),
    ) {
        let now_ms = now.0 / NS_PER_MS;
        let mut places = 0..;
        for provider in &snapshot.providers {
            let open = |word| match phase(word, now_ms, &snapshot.breaker) {
                Phase::Open | Phase::Probing => Rest::Open,
                Phase::Closed | Phase::SlowStart => Rest::None,
            };
            let host = (open(provider.breaker.read()), 0);
            let credentials = provider.credentials.iter().map(|credential| {
                let cool_ms = credential.health.cool_until_ms().saturating_sub(now_ms);
                let rest = match open(credential.health.read()) {
                    Rest::None if cool_ms > 0 => Rest::Cools,
                    rest => rest,
                };
                (Some(&*credential.name), (rest, cool_ms))
            });
            for (name, (rest, cool_ms)) in std::iter::once((None, host)).chain(credentials) {
                let place = places.next().unwrap_or(usize::MAX);
                if self.changed(place, rest) {
                    trouble.line(Category::UpstreamResting, tell, || {
                        let who =
                            name.map_or_else(|| "host".to_owned(), |n| format!("credential={n}"));
                        format!("provider={} {who} {}", provider.name, words(rest, cool_ms))
                    });
                }
            }
        }
    }

    fn changed(&mut self, place: usize, rest: Rest) -> bool {
        if place >= self.known.len() {
            self.known.resize(place + 1, Rest::None);
        }
        let Some(known) = self.known.get_mut(place) else { return false };
        std::mem::replace(known, rest) != rest
    }
}

fn words(rest: Rest, cool_ms: u64) -> String {
    match rest {
        Rest::None => "takes calls again".to_owned(),
        Rest::Cools => format!("cools for {} s", cool_ms.div_ceil(MS_PER_S)),
        Rest::Open => "breaker=open".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, env::AnyVariable};
    use crate::govern::breaker::failed;

    const TEXT: &str = r#"
[ledger]
enabled = false
[[provider]]
name = "first"
kind = "openai"
base_url = "http://127.0.0.1:8001/v1"
credentials = [{ name = "a", key = "${A}" }, { name = "b", key = "${B}" }]
"#;

    #[test]
    fn who_rests_is_told_once_when_it_begins_and_once_when_it_is_over() {
        let config = config::parse("test.toml", TEXT, &AnyVariable).unwrap();
        let snapshot = &config.snapshot;
        let (provider, rules) = (&snapshot.providers[0], &snapshot.breaker);
        let (mut resting, mut trouble) = (Resting::default(), Trouble::default());
        let mut look = |ms: u64| {
            let mut lines = Vec::new();
            trouble.turn(ms / MS_PER_S, &mut |_| panic!("few lines"));
            resting.look(snapshot, MonoNs(ms * NS_PER_MS), &mut trouble, &mut |line: &str| {
                lines.push(line.to_owned());
            });
            lines
        };
        assert_eq!(look(1_000), [""; 0]);
        provider.credentials[1].health.cool(8_500);
        assert_eq!(look(2_000), ["upstream_resting provider=first credential=b cools for 7 s"]);
        for _ in 0..rules.failures {
            provider.breaker.update(|word| failed(word, false, 2_500, rules));
        }
        assert_eq!(look(3_000), ["upstream_resting provider=first host breaker=open"]);
        assert_eq!(look(4_000), [""; 0], "what is known is not told again");
        let again = "upstream_resting provider=first credential=b takes calls again";
        assert_eq!(look(9_000), [again]);
    }
}
