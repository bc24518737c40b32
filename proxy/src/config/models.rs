//! Models: each candidate that is written, times the credentials of its provider, becomes one
//! candidate of the plan.
//!
//! A candidate's share of the calls does not depend on how many credentials its provider has: the
//! weights within a priority are brought to one measure, exactly. Bounds:
//! [`CANDIDATES_MAX`] candidates a model, weights up to [`WRITTEN_MAX`].

use super::file::{self, File};
use super::findings::{At, Findings, Text, quoted};
use super::names::{Seen, did_you_mean, model_name};
use super::reader::nearest;
use super::routing::Known;
use super::snapshot::Provider;
use crate::exchange::ids::{CredentialIx, ProviderId};
use crate::exchange::places::CANDIDATES_MAX;
use crate::exchange::plan::{Candidate, Choices};
use crate::exchange::price::{PriceIx, PriceList};
use crate::exchange::weights::{WEIGHT_MAX, common_divisor};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Largest weight and largest priority that can be written: parts in a thousand.
const WRITTEN_MAX: u32 = 1_000;

/// Numbers of the places where draws are counted.
#[derive(Default)]
pub(super) struct Groups(u32);

impl Groups {
    fn of(&mut self, candidates: &[Candidate]) -> Option<u32> {
        let number = (candidates.len() > 1).then_some(self.0)?;
        self.0 += 1;
        Some(number)
    }
}

/// A candidate before it is multiplied by credentials.
struct Source<'p> {
    id: ProviderId,
    provider: &'p Provider,
    model: Option<Arc<str>>,
    price: Option<PriceIx>,
    priority: u16,
    weight: u32,
}

/// Compiles `[[model]]`.
pub(super) fn models(
    file: &File,
    known: &Known<'_>,
    (providers, prices): (&[Option<Provider>], &PriceList),
    groups: &mut Groups,
    findings: &mut Findings<'_>,
) -> HashMap<Box<str>, Choices> {
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
        let mut sources = Vec::new();
        let mut listed = HashSet::new();
        for written in &model.candidates {
            let public = model.name.as_ref();
            let source = source(written, public, known, (providers, prices), findings);
            let Some(source) = source else { continue };
            if !listed.insert((source.id, source.model.clone())) {
                findings.error(written.at, "this candidate is listed already");
            }
            sources.push(source);
        }
        let choices = choices(&sources, groups, model.at, findings);
        if let Some(name) = &model.name {
            models.insert(name.value.clone(), choices);
        }
    }
    models
}

/// Compiles the candidates of names that are not configured.
pub(super) fn of_providers(
    file: &File,
    providers: &mut [Option<Provider>],
    groups: &mut Groups,
    findings: &mut Findings<'_>,
) {
    for (n, (provider, written)) in providers.iter_mut().zip(&file.providers).enumerate() {
        let (Some(provider), Ok(number)) = (provider.as_mut(), u16::try_from(n)) else { continue };
        let id = ProviderId(number);
        let source = Source { id, provider, model: None, price: None, priority: 1, weight: 1 };
        provider.choices = choices(&[source], groups, written.at, findings);
    }
}

fn source<'p>(
    written: &file::Candidate,
    public: Option<&Text>,
    known: &Known<'_>,
    (providers, prices): (&'p [Option<Provider>], &PriceList),
    findings: &mut Findings<'_>,
) -> Option<Source<'p>> {
    if let Some(model) = &written.model {
        model_name(model, "the name of a candidate's model", findings);
    }
    let label = "in candidates of [[model]]";
    let priority = weight(written.priority.as_ref(), &format!("\"priority\" {label}"), findings);
    let weight = weight(written.weight.as_ref(), &format!("\"weight\" {label}"), findings);
    let name = written.provider.as_ref()?;
    let id = known.usable(&name.value, name.at, findings)?;
    let model = &written.model.as_ref().or(public)?.value;
    let price = prices.lookup(&name.value, model);
    if price.is_none() && !known.has_fallback {
        let who = format!("{} of provider {}", quoted(model), quoted(&name.value));
        let what = "its calls count as zero, and keys with a budget cannot make them";
        let hint = findings.has_room().then(|| near_price(&name.value, model, prices));
        let hint = hint.unwrap_or_default();
        findings.warn(written.at, format!("no price is known for {who}: {what}{hint}"));
    }
    let provider = providers.get(usize::from(id.0))?.as_ref()?;
    let priority = u16::try_from(priority).unwrap_or(u16::MAX);
    Some(Source { id, provider, model: Some((&**model).into()), price, priority, weight })
}

/// A weight or a priority.
pub(super) fn weight(written: Option<&At<u32>>, what: &str, findings: &mut Findings<'_>) -> u32 {
    let Some(number) = written else { return 1 };
    if !(1..=WRITTEN_MAX).contains(&number.value) {
        findings.error(number.at, format!("{what} must be from 1 to {WRITTEN_MAX}"));
    }
    number.value.clamp(1, WRITTEN_MAX)
}

/// The priced name that was probably meant; in an order that is the same in every run.
fn near_price(provider: &str, model: &str, prices: &PriceList) -> String {
    let mut names: Vec<&str> = prices.names(provider).collect();
    names.sort_unstable();
    did_you_mean(nearest(model, names.into_iter()))
}

/// One candidate a source and credential, best priority first.
fn choices(
    sources: &[Source<'_>],
    groups: &mut Groups,
    at: usize,
    findings: &mut Findings<'_>,
) -> Choices {
    let count: usize = sources.iter().map(|source| source.provider.credentials.len()).sum();
    if count > CANDIDATES_MAX {
        let what = format!("there are {count} candidates here, one for each credential");
        findings.error(at, format!("{what}; at most {CANDIDATES_MAX} can be"));
        return Choices::default();
    }
    let mut sorted: Vec<&Source<'_>> = sources.iter().collect();
    sorted.sort_by_key(|source| source.priority);
    let mut candidates = Vec::with_capacity(count);
    for tier in sorted.chunk_by(|one, other| one.priority == other.priority) {
        let Some(measured) = measured(tier) else {
            let what = "the weights here have no common measure that is small enough";
            findings.error(at, format!("{what}: round them"));
            return Choices::default();
        };
        candidates.extend(measured);
    }
    let group = groups.of(&candidates);
    Choices { candidates: candidates.into(), group }
}

/// The candidates of one priority, their weights brought to one measure; `None` if there is none.
fn measured(tier: &[&Source<'_>]) -> Option<Vec<Candidate>> {
    let mut common = 1_u64;
    for source in tier {
        let sum = sum(source).max(1);
        common = (common / common_divisor(common, sum)).checked_mul(sum)?;
    }
    let mut weights = Vec::new();
    for source in tier {
        let each = common / sum(source).max(1);
        for credential in &source.provider.credentials {
            let own = u64::from(source.weight) * u64::from(credential.weight);
            weights.push(own.checked_mul(each)?);
        }
    }
    let divisor = weights.iter().copied().fold(0, common_divisor).max(1);
    let mut weights = weights.into_iter().map(|weight| weight / divisor);
    let mut candidates = Vec::new();
    for source in tier {
        for (n, credential) in source.provider.credentials.iter().enumerate() {
            let weight = u32::try_from(weights.next()?).ok().filter(|n| *n <= WEIGHT_MAX)?;
            candidates.push(Candidate {
                provider: source.id,
                credential: CredentialIx(u16::try_from(n).ok()?),
                model: source.model.clone(),
                price: source.price,
                priority: source.priority,
                weight,
                host: source.provider.breaker.clone(),
                health: credential.health.clone(),
            });
        }
    }
    Some(candidates)
}

fn sum(source: &Source<'_>) -> u64 {
    source.provider.credentials.iter().map(|credential| u64::from(credential.weight)).sum()
}
