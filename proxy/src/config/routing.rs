//! Providers, models and aliases: the part of the file whose entries refer to each other.
//!
//! What a request could never reach, or could reach under two meanings, is refused: a public
//! name that an alias or an explicit `provider/model` hides, an alias that leads nowhere. An
//! alias to an alias is refused rather than followed, so that a line says where it leads.
//! Bounds: [`PROVIDERS_MAX`], [`NAMES_MAX`], [`PATTERNS_MAX`].

use super::base_url::BaseUrl;
use super::env::Env;
use super::file::{self, File};
use super::findings::{Findings, Text, quoted};
use super::models::{self, Groups};
use super::names::{Seen, choice, did_you_mean, model_name, pattern, printable, token};
use super::reader::nearest;
use super::snapshot::{Credential, Host, Provider, ProviderKind};
use super::terms;
use super::tls::Trusts;
use crate::exchange::breaker::Breaker;
use crate::exchange::ids::ProviderId;
use crate::exchange::plan::Choices;
use crate::exchange::price::{Mode, PriceList};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Providers of one file: what fits a [`ProviderId`] many times over.
const PROVIDERS_MAX: usize = 1_024;

/// Models of one file, and aliases of one file.
const NAMES_MAX: usize = 100_000;

/// Patterns of all providers: they are tried one by one, for calls too.
const PATTERNS_MAX: usize = 1_000;

/// Steps of a chain of aliases that are followed to say where it ends.
const CHAIN_MAX: usize = 32;

/// Where calls can go.
pub(super) struct Routing {
    pub(super) providers: Box<[Provider]>,
    pub(super) models: HashMap<Box<str>, Choices>,
    pub(super) aliases: HashMap<Box<str>, Box<str>>,
}

/// The providers' names as written, faulty ones too: a fault there gives no second one here.
pub(super) struct Known<'f> {
    by_name: HashMap<&'f str, (usize, &'f file::Provider)>,
    /// In the order of the file, so that suggestions are the same in every run.
    names: Vec<&'f str>,
    by_place: &'f [file::Provider],
    /// Whether what has no price of its own has the fall-back's.
    pub(super) has_fallback: bool,
}

/// Compiles all three. The result counts only while `findings` is clean.
pub(super) fn routing(
    file: &File,
    prices: &PriceList,
    default_mode: Mode,
    folder: &Path,
    env: &dyn Env,
    findings: &mut Findings<'_>,
) -> Routing {
    let (mut hosts, mut trusts) = (HashMap::new(), Trusts::default());
    let each = file.providers.iter();
    // In the order of the file, faulty ones too: a place here is a provider's number.
    let mut compiled: Vec<Option<Provider>> = each
        .map(|written| {
            provider(written, default_mode, (&mut hosts, &mut trusts), (folder, env), findings)
        })
        .collect();
    if file.providers.is_empty() {
        findings.error(0, "there is no [[provider]]");
    }
    bounded(file, findings);
    unique_providers(file, findings);
    let known = Known::of(file);
    let mut groups = Groups::default();
    let models = models::models(file, &known, (&compiled, prices), &mut groups, findings);
    models::of_providers(file, &mut compiled, &mut groups, findings);
    let aliases = aliases(file, &known, findings);
    Routing { providers: compiled.into_iter().flatten().collect(), models, aliases }
}

fn bounded(file: &File, findings: &mut Findings<'_>) {
    let patterns = file.providers.iter().map(|provider| provider.models.len()).sum();
    for (what, count, max) in [
        ("patterns of models", patterns, PATTERNS_MAX),
        ("providers", file.providers.len(), PROVIDERS_MAX),
        ("models", file.models.len(), NAMES_MAX),
        ("aliases", file.aliases.len(), NAMES_MAX),
    ] {
        if count > max {
            findings.error(0, format!("there are {count} {what}, more than {max}"));
        }
    }
}

fn provider(
    written: &file::Provider,
    default_mode: Mode,
    (hosts, trusts): (&mut HashMap<(Host, u16), Arc<Breaker>>, &mut Trusts),
    (folder, env): (&Path, &dyn Env),
    findings: &mut Findings<'_>,
) -> Option<Provider> {
    if let Some(name) = &written.name {
        token(name, "the name of a provider", findings);
    }
    let kind = written.kind.as_ref().and_then(|kind| provider_kind(kind, findings));
    let url = written.base_url.as_ref().and_then(|text| {
        let parsed = BaseUrl::parse(&text.value, env);
        let faults = parsed.as_ref().err().into_iter().flatten();
        faults.for_each(|why| findings.error(text.at, *why));
        let url = parsed.ok()?;
        if kind == Some(ProviderKind::OpenAi) && url.path.is_empty() {
            let why = "has no path: providers of kind openai mostly want /v1 at its end";
            findings.warn(text.at, format!("base_url {why}"));
        }
        if kind == Some(ProviderKind::Anthropic) && url.path.ends_with("/v1") {
            let why = "ends in /v1: calls to providers of kind anthropic add it themselves";
            findings.warn(text.at, format!("base_url {why}"));
        }
        Some(url)
    });
    let mode = terms::provider_mode(written, default_mode, findings);
    for model in &written.models {
        pattern(model, findings);
    }
    let credentials = credentials(written, folder, env, findings);
    let url = url?;
    let tls = trusts.client(&url, written, (folder, env), findings);
    let breaker = hosts.entry((url.host.clone(), url.port)).or_default().clone();
    Some(Provider {
        name: written.name.as_ref()?.value.clone(),
        kind: kind?,
        authority: url.authority,
        host: url.host,
        port: url.port,
        tls,
        base_path: url.path,
        credentials,
        serves: written.models.iter().map(|model| model.value.clone()).collect(),
        mode,
        breaker,
        choices: Choices::default(),
    })
}

fn provider_kind(kind: &Text, findings: &mut Findings<'_>) -> Option<ProviderKind> {
    let names = [("openai", ProviderKind::OpenAi), ("anthropic", ProviderKind::Anthropic)];
    choice(kind, "kind", &names, findings)
}

fn credentials(
    written: &file::Provider,
    folder: &Path,
    env: &dyn Env,
    findings: &mut Findings<'_>,
) -> Box<[Credential]> {
    let mut names = Seen::new("credential");
    let mut usable = Vec::new();
    for credential in &written.credentials {
        if let Some(name) = &credential.name {
            printable(name, "the name of a credential", findings);
            names.note(name, findings);
        }
        let what = "\"weight\" in credentials of [[provider]]";
        let weight = models::weight(credential.weight.as_ref(), what, findings);
        let Some(key) = &credential.key else { continue };
        match key.value.fetch(folder, env) {
            Ok(secret) => usable.extend(credential.name.as_ref().map(|name| Credential {
                name: name.value.clone(),
                secret,
                weight,
                health: Arc::default(),
            })),
            Err(why) => findings.error(key.at, why),
        }
    }
    if written.credentials.is_empty() && written.has_credentials {
        findings.error(written.at, "[[provider]] has no credential");
    }
    usable.into()
}

fn unique_providers(file: &File, findings: &mut Findings<'_>) {
    let mut names = Seen::new("provider");
    // Of each kind on its own: a call goes to a provider that speaks its dialect.
    let mut patterns: HashMap<&str, Seen<'_>> = HashMap::new();
    for provider in &file.providers {
        if let Some(name) = &provider.name {
            names.note(name, findings);
        }
        let kind = provider.kind.as_ref().map_or("", |kind| &*kind.value);
        let patterns = patterns.entry(kind).or_insert_with(|| Seen::new("pattern of models"));
        for model in &provider.models {
            patterns.note(model, findings);
        }
    }
}

// === impl Known ===

impl<'f> Known<'f> {
    fn of(file: &'f File) -> Known<'f> {
        let mut by_name = HashMap::new();
        for (n, provider) in file.providers.iter().enumerate() {
            if let Some(name) = &provider.name {
                by_name.entry(&*name.value).or_insert((n, provider));
            }
        }
        let names = file.providers.iter().filter_map(|provider| provider.name.as_ref());
        Known {
            by_name,
            names: names.map(|name| &*name.value).collect(),
            by_place: &file.providers,
            has_fallback: file.price.fallback.is_some(),
        }
    }

    /// The provider of a name.
    pub(super) fn usable(
        &self,
        name: &str,
        at: usize,
        findings: &mut Findings<'_>,
    ) -> Option<ProviderId> {
        let Some((n, _)) = self.by_name.get(name) else {
            let hint = did_you_mean(nearest(name, self.names.iter().copied()));
            findings.error(at, format!("there is no provider {}{hint}", quoted(name)));
            return None;
        };
        u16::try_from(*n).ok().map(ProviderId)
    }

    /// Whether a name is read as `provider/model`.
    pub(super) fn explicit<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        name.split_once('/').filter(|(provider, _)| self.by_name.contains_key(provider))
    }

    /// What was probably meant by a name that nothing serves.
    fn near(&self, name: &str, public: impl Iterator<Item = &'f str>) -> String {
        let near = name.split_once('/').and_then(|(provider, model)| {
            nearest(provider, self.names.iter().copied()).map(|near| format!("{near}/{model}"))
        });
        let listed = self.by_place.iter().flat_map(|provider| &provider.models);
        let listed = listed.map(|model| &*model.value).filter(|model| !model.ends_with('*'));
        did_you_mean(near.as_deref().or_else(|| nearest(name, public.chain(listed))))
    }

    fn serves(&self, model: &str) -> bool {
        let patterns = self.by_name.values().flat_map(|(_, provider)| &provider.models);
        let mut patterns = patterns.map(|pattern| &*pattern.value);
        patterns.any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => model.starts_with(prefix),
            None => pattern == model,
        })
    }
}

fn aliases(
    file: &File,
    known: &Known<'_>,
    findings: &mut Findings<'_>,
) -> HashMap<Box<str>, Box<str>> {
    let table: HashMap<&str, &str> =
        file.aliases.iter().map(|(name, target)| (&*name.value, &*target.value)).collect();
    let written = file.models.iter().filter_map(|model| model.name.as_ref());
    let written = written.map(|name| &*name.value);
    let public: HashSet<&str> = written.clone().collect();
    for (name, target) in &file.aliases {
        model_name(name, "an alias", findings);
        model_name(target, "the target of an alias", findings);
        let (alias, to) = (quoted(&name.value), quoted(&target.value));
        if public.contains(&*name.value) {
            findings.error(name.at, format!("alias {alias} hides the model of the same name"));
        }
        if table.contains_key(&*target.value) {
            findings.error(target.at, chained(&name.value, &target.value, &table));
        } else if public.contains(&*target.value) {
            continue;
        } else if let Some((provider, model)) = known.explicit(&target.value) {
            known.usable(provider, target.at, findings);
            if model.is_empty() {
                findings.error(target.at, format!("alias {alias} names a provider and no model"));
            }
        } else if !known.serves(&target.value) {
            let hint = findings.has_room().then(|| known.near(&target.value, written.clone()));
            let hint = hint.unwrap_or_default();
            findings.error(
                target.at,
                format!("alias {alias} leads to {to}, which nothing serves{hint}"),
            );
        }
    }
    file.aliases.iter().map(|(name, to)| (name.value.clone(), to.value.clone())).collect()
}

/// What is wrong with an alias to an alias: a circle, or a detour whose end can be named.
fn chained(name: &str, target: &str, table: &HashMap<&str, &str>) -> String {
    let (alias, to) = (quoted(name), quoted(target));
    let mut end = target;
    for _ in 0..CHAIN_MAX {
        if end == name {
            return format!("alias {alias} leads in a circle");
        }
        match table.get(end) {
            Some(next) => end = next,
            None => {
                let end = quoted(end);
                return format!("alias {alias} leads to the alias {to}; write {end} instead");
            }
        }
    }
    format!("alias {alias} leads to the alias {to}")
}
