//! Lines that point a client here, to be pasted into a shell: of dialects that some provider takes
//! and of routes that are served. The key is not in them: they read `TOLLGATE_KEY`, which the first
//! start prints once, and so they can be told at every start.

use crate::config::Config;
use crate::config::snapshot::{Provider, ProviderKind, Snapshot};
use crate::exchange::plan::Choices;
use serde_json::{Map, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Models to ask for where a provider serves whatever it is asked for.
const EXAMPLES: [&str; 2] = ["gpt-4o-mini", "claude-haiku-4-5"];

/// What stands where nobody can know a model.
const ANY: &str = "MODEL";

/// A line a client: its name, and what to paste.
pub(super) fn lines(config: &Config, data: SocketAddr) -> Vec<(&'static str, String)> {
    let snapshot = &config.snapshot;
    let base = base(data, config.listen_tls.is_some());
    let served = |kind| snapshot.providers.iter().any(|provider| provider.kind == kind);
    let (chat, messages) = (served(ProviderKind::OpenAi), served(ProviderKind::Anthropic));
    let mut lines = Vec::new();
    if messages {
        let claude = format!("ANTHROPIC_BASE_URL={base} ANTHROPIC_AUTH_TOKEN=$TOLLGATE_KEY claude");
        lines.push(("Claude Code", claude));
        // A key of the provider's own under the other name would be taken first.
        let sdk = format!(
            "export ANTHROPIC_BASE_URL={base} ANTHROPIC_AUTH_TOKEN=$TOLLGATE_KEY; \
             unset ANTHROPIC_API_KEY"
        );
        lines.push(("Anthropic SDK", sdk));
    }
    if chat {
        let sdk = format!("export OPENAI_BASE_URL={base}/v1 OPENAI_API_KEY=$TOLLGATE_KEY");
        lines.push(("OpenAI SDK", sdk));
    }
    lines.push(("opencode", opencode(&base, chat.then(|| example(snapshot, true)), messages)));
    if chat {
        let body = json!({
            "model": example(snapshot, true),
            "messages": [{"role": "user", "content": "hello"}],
        });
        lines.push(("curl", curl(&base, "chat/completions", &body.to_string())));
    }
    if messages {
        let body = json!({
            "model": example(snapshot, false),
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "hello"}],
        });
        lines.push(("curl", curl(&base, "messages", &body.to_string())));
    }
    if config.listen_tls.is_some() {
        let names = "say a name of the certificate for the address; if its CA is your own: \
                     NODE_EXTRA_CA_CERTS=CA.pem (Claude Code, opencode, Node), \
                     SSL_CERT_FILE=CA.pem (Python), --cacert CA.pem (curl)";
        lines.push(("all", names.to_owned()));
    }
    lines
}

/// Where a client of this machine calls: an address that stands for all of them is none to call.
fn base(data: SocketAddr, secured: bool) -> String {
    let scheme = if secured { "https" } else { "http" };
    let ip = match data.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("{scheme}://{}", SocketAddr::new(ip, data.port()))
}

/// A whole configuration in one variable. Its providers of the dialects' own names would use
/// routes that are not served, so chat goes by the package for those that are compatible.
fn opencode(base: &str, chat: Option<String>, messages: bool) -> String {
    let options = json!({"baseURL": format!("{base}/v1"), "apiKey": "{env:TOLLGATE_KEY}"});
    let mut providers = Map::new();
    if messages {
        providers.insert("anthropic".to_owned(), json!({"options": options}));
    }
    if let Some(model) = chat {
        let models = Map::from_iter([(model, json!({}))]);
        let package = "@ai-sdk/openai-compatible";
        let provider = json!({"npm": package, "options": options, "models": models});
        providers.insert("tollgate".to_owned(), provider);
    }
    let config = json!({"provider": providers}).to_string();
    format!("OPENCODE_CONFIG_CONTENT={} opencode", quoted(&config))
}

fn curl(base: &str, path: &str, body: &str) -> String {
    format!(
        "curl -sS {base}/v1/{path} -H \"authorization: Bearer $TOLLGATE_KEY\" \
         -H 'content-type: application/json' -d {}",
        quoted(body)
    )
}

/// As one word of a shell. Names of models are printable ASCII, quotes among it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A model that calls of a dialect can ask for: an alias, else a model that is configured, else
/// what a provider says it serves.
fn example(snapshot: &Snapshot, chat: bool) -> String {
    let kind = if chat { ProviderKind::OpenAi } else { ProviderKind::Anthropic };
    let aliases = snapshot.aliases.iter().filter(|(_, target)| leads_to(snapshot, target, kind));
    let models = snapshot.models.iter().filter(|(_, choices)| takes(snapshot, choices, kind));
    // The first by name: a map has no order.
    let alias = aliases.map(|(name, _)| &**name).min();
    if let Some(name) = alias.or_else(|| models.map(|(name, _)| &**name).min()) {
        return name.to_owned();
    }
    let mut providers = snapshot.providers.iter().filter(|provider| provider.kind == kind);
    providers.find_map(example_of).unwrap_or(ANY).to_owned()
}

/// Whether somebody of this kind is among them.
fn takes(snapshot: &Snapshot, choices: &Choices, kind: ProviderKind) -> bool {
    let mut candidates = choices.candidates.iter();
    candidates.any(|candidate| snapshot.provider(candidate.provider).kind == kind)
}

/// Whether the target of an alias leads to somebody of this kind, read as a call's name is.
fn leads_to(snapshot: &Snapshot, target: &str, kind: ProviderKind) -> bool {
    if let Some(choices) = snapshot.models.get(target) {
        return takes(snapshot, choices, kind);
    }
    let named = target.split_once('/').and_then(|(name, _)| snapshot.provider_named(name));
    match named {
        Some(provider) => snapshot.provider(provider).kind == kind,
        None => snapshot.providers.iter().any(|p| p.kind == kind && p.serves(target)),
    }
}

fn example_of(provider: &Provider) -> Option<&str> {
    let mut serves = provider.serves.iter();
    let whole = serves.clone().map(|pattern| &**pattern).find(|name| !name.ends_with('*'));
    whole.or_else(|| {
        let stems: Vec<&str> = serves.by_ref().filter_map(|p| p.strip_suffix('*')).collect();
        let of_kind = match provider.kind {
            ProviderKind::OpenAi => EXAMPLES[0],
            ProviderKind::Anthropic => EXAMPLES[1],
        };
        stems.iter().any(|stem| of_kind.starts_with(stem)).then_some(of_kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, env::AnyVariable};

    fn told(text: &str, data: &str) -> Vec<(&'static str, String)> {
        let text = format!("state_dir = \"/s\"\n{text}");
        let config = config::parse("t", &text, &AnyVariable).map_err(|e| e.to_string()).unwrap();
        lines(&config, data.parse().unwrap())
    }

    const CHAT: &str = "[[provider]]\nname = \"a\"\nkind = \"openai\"\nmodels = [\"gpt-*\"]\n\
        base_url = \"http://127.0.0.1:1/v1\"\ncredentials = [{ name = \"k\", key = \"${K}\" }]\n";
    const MESSAGES: &str = "[[provider]]\nname = \"b\"\nkind = \"anthropic\"\n\
        models = [\"claude's\"]\nbase_url = \"http://127.0.0.1:1\"\n\
        credentials = [{ name = \"k\", key = \"${K}\" }]\n";

    #[test]
    fn a_client_is_told_only_of_what_some_provider_takes() {
        let names = |text: &str| {
            let lines = told(text, "127.0.0.1:4180");
            lines.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(names(CHAT), "OpenAI SDK, opencode, curl");
        assert_eq!(names(MESSAGES), "Claude Code, Anthropic SDK, opencode, curl");
        let both = format!("{CHAT}{MESSAGES}");
        let all = "Claude Code, Anthropic SDK, OpenAI SDK, opencode, curl, curl";
        assert_eq!(names(&both), all);
    }

    #[test]
    fn lines_can_be_pasted_and_hold_no_secret() {
        let lines = told(&format!("{CHAT}{MESSAGES}"), "0.0.0.0:4180");
        let text: Vec<&str> = lines.iter().map(|(_, line)| &**line).collect();
        let base = "http://127.0.0.1:4180";
        assert_eq!(
            text[..3],
            [
                &*format!("ANTHROPIC_BASE_URL={base} ANTHROPIC_AUTH_TOKEN=$TOLLGATE_KEY claude"),
                &*format!(
                    "export ANTHROPIC_BASE_URL={base} ANTHROPIC_AUTH_TOKEN=$TOLLGATE_KEY; \
                     unset ANTHROPIC_API_KEY"
                ),
                &*format!("export OPENAI_BASE_URL={base}/v1 OPENAI_API_KEY=$TOLLGATE_KEY"),
            ]
        );
        assert!(text[3].contains(r#""apiKey":"{env:TOLLGATE_KEY}""#), "{}", text[3]);
        assert!(text[3].contains(r#""models":{"gpt-4o-mini":{}}"#), "{}", text[3]);
        assert!(text[4].contains(&format!("{base}/v1/chat/completions -H")), "{}", text[4]);
        assert!(text[5].contains(r"claude'\''s"), "a quote ends no word: {}", text[5]);
        assert!(!text.iter().any(|line| line.contains("sk-secret") || line.contains('\n')));
    }

    #[test]
    fn a_model_that_is_configured_is_asked_for_by_its_name() {
        let model = "[[model]]\nname = \"small\"\ncandidates = [{ provider = \"a\", \
                     model = \"gpt-4o-mini\" }]\n";
        let lines = told(&format!("{CHAT}{model}"), "[::]:4180");
        let (_, curl) = lines.last().unwrap();
        assert!(curl.contains(r#""model":"small""#) && curl.contains("http://[::1]:4180/"));
        let bare = CHAT.replace("models = [\"gpt-*\"]\n", "");
        assert!(told(&bare, "127.0.0.1:1").last().unwrap().1.contains(r#""model":"MODEL""#));
    }

    #[test]
    fn an_alias_is_asked_for_by_those_whose_dialect_it_leads_to() {
        let asked = |more: &str| {
            let lines = told(&format!("{CHAT}{MESSAGES}{more}"), "127.0.0.1:4180");
            let models = lines.iter().filter(|(name, _)| *name == "curl").map(|(_, paste)| {
                let (_, rest) = paste.split_once("\"model\":\"").unwrap();
                rest.split_once('"').unwrap().0.to_owned()
            });
            models.collect::<Vec<_>>().join(", ")
        };
        let own = r"claude'\''s";
        let model = "[[model]]\nname = \"big\"\ncandidates = [{ provider = \"b\", \
                     model = \"claude's\" }]\n";
        for (more, expected) in [
            ("[alias]\nfast = \"gpt-small\"\n".to_owned(), format!("fast, {own}")),
            ("[alias]\nquick = \"a/x\"\nfast = \"a/y\"\n".to_owned(), format!("fast, {own}")),
            ("[alias]\nfast = \"b/x\"\n".to_owned(), "gpt-4o-mini, fast".to_owned()),
            (format!("{model}[alias]\nlarge = \"big\"\n"), "gpt-4o-mini, large".to_owned()),
            (model.to_owned(), "gpt-4o-mini, big".to_owned()),
        ] {
            assert_eq!(asked(&more), expected, "{more}");
        }
    }
}
