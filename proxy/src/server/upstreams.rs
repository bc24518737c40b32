//! How the upstreams of a configuration do at a moment: the breakers' words, read and named for
//! whoever scrapes. Changes nothing.

use crate::config::snapshot::{Provider, Snapshot};
use crate::exchange::breaker::{BreakerRules, BreakerWord};
use crate::exchange::time::MonoNs;
use crate::govern::breaker::{Phase, phase};
use crate::observe::upstreams::UpstreamState;

const NS_PER_MS: u64 = 1_000_000;

/// Every provider, in the order of the configuration.
pub fn states(snapshot: &Snapshot, now: MonoNs) -> Vec<UpstreamState> {
    let now_ms = now.0 / NS_PER_MS;
    snapshot.providers.iter().map(|provider| state(provider, now_ms, &snapshot.breaker)).collect()
}

fn state(provider: &Provider, now_ms: u64, rules: &BreakerRules) -> UpstreamState {
    let mut state = UpstreamState {
        provider: provider.name.clone(),
        host: place(phase(provider.breaker.read(), now_ms, rules)),
        ..UpstreamState::default()
    };
    for credential in &provider.credentials {
        let at = place(phase(credential.health.read(), now_ms, rules));
        if let Some(count) = state.credentials.get_mut(at) {
            *count += 1;
        }
        state.cooling += u64::from(credential.health.cool_until_ms() > now_ms);
    }
    state
}

/// Its place in [`BREAKER_STATES`](crate::observe::upstreams::BREAKER_STATES).
fn place(phase: Phase) -> usize {
    match phase {
        Phase::Closed => 0,
        Phase::Open => 1,
        Phase::Probing => 2,
        Phase::SlowStart => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, env::AnyVariable};
    use crate::govern::breaker::failed;
    use crate::observe::upstreams::BREAKER_STATES;

    #[test]
    fn a_host_that_fails_and_a_credential_that_cools_are_seen_and_the_others_stay_as_they_are() {
        let provider = |name: &str, port: u16| {
            format!(
                "[[provider]]\nname = \"{name}\"\nkind = \"openai\"\n\
                 base_url = \"http://127.0.0.1:{port}/v1\"\ncredentials = [\
                 {{ name = \"a\", key = \"${{A}}\" }}, {{ name = \"b\", key = \"${{B}}\" }}]\n"
            )
        };
        let text = format!(
            "[ledger]\nenabled = false\n{}{}",
            provider("first", 8001),
            provider("second", 8002)
        );
        let config = config::parse("test.toml", &text, &AnyVariable).unwrap();
        let snapshot = &config.snapshot;
        let (first, rules) = (&snapshot.providers[0], &snapshot.breaker);
        let now = MonoNs(7_000 * NS_PER_MS);
        for _ in 0..rules.failures {
            first.breaker.update(|word| failed(word, false, 7_000, rules));
        }
        first.credentials[1].health.cool(7_001);
        let at = |name| BREAKER_STATES.iter().position(|state| *state == name).unwrap();
        let states_now = states(snapshot, now);
        assert_eq!(states_now[0].host, at("open"));
        assert_eq!((states_now[0].credentials, states_now[0].cooling), ([2, 0, 0, 0], 1));
        assert_eq!((states_now[1].host, states_now[1].cooling), (at("closed"), 0));
        let later = MonoNs(7_001 * NS_PER_MS);
        assert_eq!(states(snapshot, later)[0].cooling, 0, "a time that is over is over");
    }
}
