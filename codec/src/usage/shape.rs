//! From reported fields to disjoint buckets, one function for each shape of answer.
//!
//! In chat, responses and gemini answers the cached tokens are a part of the input; in messages
//! answers they stand beside it. Reasoning is a part of the output, except in gemini answers.

use super::{Provenance, ReportedUsage, UsageEnvelope, UsageField as Field, UsageFlags as Flags};

/// The envelope of a report, its shape told by its own fields. Nothing reported is `Missing`.
#[must_use]
pub fn envelope(usage: &ReportedUsage) -> UsageEnvelope {
    let has = |field| usage.count(field).is_some();
    if has(Field::GeminiPrompt) || has(Field::GeminiCandidates) || has(Field::GeminiThoughts) {
        return gemini(usage);
    }
    if has(Field::Prompt) || has(Field::Completion) {
        return chat(usage);
    }
    if !has(Field::Input) && !has(Field::Output) {
        return UsageEnvelope { flags: usage.doubts(), ..UsageEnvelope::default() };
    }
    let beside = has(Field::CacheRead)
        || has(Field::CacheWrite)
        || has(Field::CacheWrite5m)
        || has(Field::CacheWrite1h);
    // With fields of both conventions the cached tokens are taken as a part: that is cheaper.
    if beside && !has(Field::Cached) { anthropic(usage) } else { responses(usage) }
}

/// Chat completions: `prompt_tokens`, `completion_tokens` and their details.
#[must_use]
pub fn chat(usage: &ReportedUsage) -> UsageEnvelope {
    let input = first_above_zero(usage, Field::Prompt, Field::Input);
    let output = first_above_zero(usage, Field::Completion, Field::Output);
    openai(usage, input, output)
}

/// Responses: `input_tokens`, `output_tokens` and their details.
#[must_use]
pub fn responses(usage: &ReportedUsage) -> UsageEnvelope {
    openai(usage, usage.count(Field::Input), usage.count(Field::Output))
}

fn openai(usage: &ReportedUsage, input: Option<u64>, output: Option<u64>) -> UsageEnvelope {
    let mut build = Build::new(usage, input, output);
    let prompt = input.unwrap_or_default();
    let completion = output.unwrap_or_default();
    let beside = usage.count(Field::CacheRead).filter(|&count| count > 0);
    let writes = usage.count(Field::CacheWrite).filter(|&count| count > 0);
    if beside.is_some() || writes.is_some() {
        // A field of the other convention. Read as a part of the input, and writes left in the
        // fresh input, it costs least.
        build.flag(Flags::AMBIGUOUS);
    }
    let cached = usage.count(Field::Cached).or(beside).unwrap_or_default();
    let audio_in = usage.count(Field::AudioIn).unwrap_or_default();
    let fresh = prompt.checked_sub(cached).and_then(|rest| rest.checked_sub(audio_in));
    match fresh {
        Some(fresh) => {
            build.envelope.input_fresh = build.bucket(fresh);
            build.envelope.input_cache_read = build.bucket(cached);
            build.envelope.audio_in = build.bucket(audio_in);
        }
        None => {
            build.flag(Flags::PARTS_EXCEED_INPUT);
            build.envelope.input_fresh = build.bucket(prompt);
        }
    }
    let audio_out = usage.count(Field::AudioOut).unwrap_or_default();
    if audio_out > completion {
        build.flag(Flags::PARTS_EXCEED_OUTPUT);
    }
    let audio_out = audio_out.min(completion);
    build.envelope.output = build.bucket(completion - audio_out);
    build.envelope.audio_out = build.bucket(audio_out);
    build.reasoning(usage.count(Field::Reasoning));
    build.total(usage, prompt, completion)
}

/// Messages: cache reads and writes stand beside `input_tokens`.
#[must_use]
pub fn anthropic(usage: &ReportedUsage) -> UsageEnvelope {
    let (input, output) = (usage.count(Field::Input), usage.count(Field::Output));
    let mut build = Build::new(usage, input, output);
    let flat = usage.count(Field::CacheWrite).unwrap_or_default();
    let hour = usage.count(Field::CacheWrite1h).unwrap_or_default();
    let minutes = usage.count(Field::CacheWrite5m).unwrap_or_default();
    let split = hour.saturating_add(minutes);
    if split > flat && usage.count(Field::CacheWrite).is_some() {
        build.flag(Flags::SPLIT_EXCEEDS_WRITES);
    }
    // What the split does not name was written at the default lifetime, five minutes.
    let unnamed = flat.saturating_sub(split);
    build.envelope.input_fresh = build.bucket(input.unwrap_or_default());
    build.envelope.input_cache_read =
        build.bucket(usage.count(Field::CacheRead).unwrap_or_default());
    build.envelope.input_cache_write_5m = build.bucket(minutes.saturating_add(unnamed));
    build.envelope.input_cache_write_1h = build.bucket(hour);
    build.envelope.output = build.bucket(output.unwrap_or_default());
    build.reasoning(usage.count(Field::Reasoning));
    build.envelope
}

/// Gemini: the cached part lies inside the prompt, the tool-use prompt and the thoughts outside.
#[must_use]
pub fn gemini(usage: &ReportedUsage) -> UsageEnvelope {
    let prompt = usage.count(Field::GeminiPrompt);
    let candidates = usage.count(Field::GeminiCandidates);
    let thoughts = usage.count(Field::GeminiThoughts);
    let mut build = Build::new(usage, prompt, candidates.or(thoughts));
    let tool_use = usage.count(Field::GeminiToolUse).unwrap_or_default();
    let cached = usage.count(Field::GeminiCached).unwrap_or_default();
    let prompt = prompt.unwrap_or_default();
    let (fresh, cached) = match prompt.checked_sub(cached) {
        Some(fresh) => (fresh, cached),
        None => {
            build.flag(Flags::PARTS_EXCEED_INPUT);
            (prompt, 0)
        }
    };
    let thoughts = thoughts.unwrap_or_default();
    let output = candidates.unwrap_or_default().saturating_add(thoughts);
    build.envelope.input_fresh = build.bucket(fresh.saturating_add(tool_use));
    build.envelope.input_cache_read = build.bucket(cached);
    build.envelope.output = build.bucket(output);
    build.envelope.reasoning_of_output = build.bucket(thoughts);
    build.total(usage, prompt.saturating_add(tool_use), output)
}

/// Of two spellings the first that says more than 0.
fn first_above_zero(usage: &ReportedUsage, first: Field, second: Field) -> Option<u64> {
    let first = usage.count(first);
    first.filter(|&count| count > 0).or_else(|| usage.count(second)).or(first)
}

struct Build {
    envelope: UsageEnvelope,
}

impl Build {
    fn new(usage: &ReportedUsage, input: Option<u64>, output: Option<u64>) -> Self {
        let mut flags = usage.doubts();
        if input.is_none() {
            flags.insert(Flags::INPUT_MISSING);
        }
        if output.is_none() {
            flags.insert(Flags::OUTPUT_MISSING);
        }
        let provenance = match (input, output) {
            (None, None) => Provenance::Missing,
            // As far as it goes it is noted; the final count was not seen.
            _ if flags.contains(Flags::UNFINISHED) => Provenance::Estimated,
            _ if flags.contains(Flags::IMPOSSIBLE) => Provenance::Estimated,
            _ => Provenance::Reported,
        };
        Self { envelope: UsageEnvelope { provenance, flags, ..UsageEnvelope::default() } }
    }

    fn flag(&mut self, flag: Flags) {
        self.envelope.flags.insert(flag);
    }

    fn bucket(&mut self, count: u64) -> u32 {
        u32::try_from(count).unwrap_or_else(|_| {
            self.flag(Flags::TOO_LARGE);
            u32::MAX
        })
    }

    fn reasoning(&mut self, reasoning: Option<u64>) {
        let reasoning = self.bucket(reasoning.unwrap_or_default());
        if reasoning > self.envelope.output {
            self.flag(Flags::PARTS_EXCEED_OUTPUT);
        }
        self.envelope.reasoning_of_output = reasoning.min(self.envelope.output);
    }

    fn total(mut self, usage: &ReportedUsage, input: u64, output: u64) -> UsageEnvelope {
        let sum = input.saturating_add(output);
        if usage.count(Field::Total).is_some_and(|total| total != sum) {
            self.flag(Flags::TOTAL_MISMATCH);
        }
        self.envelope
    }
}
