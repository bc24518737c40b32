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
use super::names::{Seen, choice, did_you_mean, model_name, pattern, printable, token};
use super::reader::nearest;
use super::snapshot::{Credential, Provider, ProviderKind};
use super::terms;
use crate::exchange::ids::{CredentialIx, ProviderId};
use crate::exchange::plan::Candidate;
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
    pub(super) models: HashMap<Box<str>, Box<[Candidate]>>,
    pub(super) aliases: HashMap<Box<str>, Box<str>>,
}

/// The providers' names as written, faulty ones too: a fault there gives no second one here.
struct Known<'f> {
    by_name: HashMap<&'f str, (usize, &'f file::Provider)>,
    /// In the order of the file, so that suggestions are the same in every run.
    names: Vec<&'f str>,
    by_place: &'f [file::Provider],
    /// Whether what has no price of its own has the fall-back's.
    has_fallback: bool,
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
    let each = file.providers.iter();
    let compiled: Vec<Provider> =
        each.filter_map(|p| provider(p, default_mode, folder, env, findings)).collect();
    if file.providers.is_empty() {
        findings.error(0, "there is no [[provider]]");
    }
    bounded(file, findings);
    unique_providers(file, findings);
    let known = Known::of(file);
    let models = models(file, &known, prices, findings);
    let aliases = aliases(file, &known, findings);
    Routing { providers: compiled.into(), models, aliases }
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
    folder: &Path,
    env: &dyn Env,
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
        Some(url)
    });
    let mode = terms::provider_mode(written, default_mode, findings);
    for model in &written.models {
        pattern(model, findings);
    }
    let credentials = credentials(written, folder, env, findings);
    let url = url?;
    Some(Provider {
        name: written.name.as_ref()?.value.clone(),
        kind: kind?,
        authority: url.authority,
        host: url.host,
        port: url.port,
        base_path: url.path,
        credentials,
        serves: written.models.iter().map(|model| model.value.clone()).collect(),
        mode,
    })
}

fn provider_kind(kind: &Text, findings: &mut Findings<'_>) -> Option<ProviderKind> {
    let names = [("openai", ProviderKind::OpenAi), ("anthropic", ProviderKind::Anthropic)];
    let chosen = choice(kind, "kind", &names, findings);
    if chosen == Some(ProviderKind::Anthropic) {
        findings.warn(kind.at, "no route of this version can use a provider of this kind");
    }
    chosen
}

fn credentials(
    written: &file::Provider,
    folder: &Path,
    env: &dyn Env,
    findings: &mut Findings<'_>,
) -> Box<[Credential]> {
    let mut names = Seen::new("credential");
    let mut usable = Vec::new();
    for (n, credential) in written.credentials.iter().enumerate() {
        if n == 1 {
            let what = "choosing between credentials is not built yet: list one";
            findings.error(credential.at, what);
        }
        if let Some(name) = &credential.name {
            printable(name, "the name of a credential", findings);
            names.note(name, findings);
        }
        let Some(key) = &credential.key else { continue };
        match key.value.fetch(folder, env) {
            Ok(secret) => usable.extend(
                credential
                    .name
                    .as_ref()
                    .map(|name| Credential { name: name.value.clone(), secret }),
            ),
            Err(why) => findings.error(key.at, why),
        }
    }
    if written.credentials.is_empty() && written.has_credentials {
        findings.error(written.at, "[[provider]] has no credential");
    }
    usable.into()
}

fn unique_providers(file: &File, findings: &mut Findings<'_>) {
    let (mut names, mut patterns) = (Seen::new("provider"), Seen::new("pattern of models"));
    for provider in &file.providers {
        if let Some(name) = &provider.name {
            names.note(name, findings);
        }
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

    /// A provider that the chat route can use.
    fn usable(&self, name: &str, at: usize, findings: &mut Findings<'_>) -> Option<ProviderId> {
        let Some((n, provider)) = self.by_name.get(name) else {
            let hint = did_you_mean(nearest(name, self.names.iter().copied()));
            findings.error(at, format!("there is no provider {}{hint}", quoted(name)));
            return None;
        };
        if provider.kind.as_ref().is_some_and(|kind| &*kind.value == "anthropic") {
            let why = "is of kind anthropic: translating chat calls is not built yet";
            findings.error(at, format!("provider {} {why}", quoted(name)));
        }
        u16::try_from(*n).ok().map(ProviderId)
    }

    /// Whether a name is read as `provider/model`.
    fn explicit<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
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

fn models(
    file: &File,
    known: &Known<'_>,
    prices: &PriceList,
    findings: &mut Findings<'_>,
) -> HashMap<Box<str>, Box<[Candidate]>> {
    let mut models = HashMap::new();
    let mut names = Seen::new("model");
    for model in &file.models {
        if let Some(name) = &model.name {
            model_name(name, "the name of a model", findings);
            names.note(name, findings);
            if known.explicit(&name.value).is_some() {
                let why = "is read as provider/model and never as this name";
                findings.error(name.at, format!("model {} {why}", quoted(&name.value)));
            }
        }
        for extra in model.candidates.iter().skip(1) {
            findings.error(extra.at, "failover is not built yet: list one candidate");
        }
        let first = model.candidates.first();
        let candidate =
            first.and_then(|c| candidate(c, model.name.as_ref(), known, prices, findings));
        if let (Some(name), Some(candidate)) = (&model.name, candidate) {
            models.insert(name.value.clone(), Box::from([candidate]));
        }
    }
    models
}

fn candidate(
    written: &file::Candidate,
    public: Option<&Text>,
    known: &Known<'_>,
    prices: &PriceList,
    findings: &mut Findings<'_>,
) -> Option<Candidate> {
    if let Some(model) = &written.model {
        model_name(model, "the name of a candidate's model", findings);
    }
    let name = written.provider.as_ref()?;
    let provider = known.usable(&name.value, name.at, findings)?;
    let model = &written.model.as_ref().or(public)?.value;
    let price = prices.lookup(&name.value, model);
    if price.is_none() && !known.has_fallback {
        let who = format!("{} of provider {}", quoted(model), quoted(&name.value));
        let what = "its calls count as zero, and keys with a budget cannot make them";
        let hint = findings.has_room().then(|| near_price(&name.value, model, prices));
        let hint = hint.unwrap_or_default();
        findings.warn(written.at, format!("no price is known for {who}: {what}{hint}"));
    }
    let model = Some((&**model).into());
    Some(Candidate {
        provider,
        credential: CredentialIx(0),
        model,
        price,
        priority: 1,
        weight: 1,
        host: Arc::default(),
        health: Arc::default(),
    })
}

/// The priced name that was probably meant; in an order that is the same in every run.
fn near_price(provider: &str, model: &str, prices: &PriceList) -> String {
    let mut names: Vec<&str> = prices.names(provider).collect();
    names.sort_unstable();
    did_you_mean(nearest(model, names.into_iter()))
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
