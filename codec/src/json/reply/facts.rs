//! What the reply scan found, and how a value at a known place becomes a fact.

use super::event::EventType;
use super::paths::{Place, TextPlace};
use super::said::SaidText;
use super::token::{ShortText, TOKEN_MAX};
use crate::usage::{ReportedUsage, UsageFlags};

/// What an answer says about an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorFacts {
    /// `error.code`, text or number.
    pub code: Option<ShortText>,
    /// `error.type`.
    pub kind: Option<ShortText>,
    /// `error.status`.
    pub status: Option<ShortText>,
}

/// What the reply scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyFacts {
    /// The counts, as reported.
    pub usage: ReportedUsage,
    /// The first `type`, which in the data of an event names it.
    pub event: Option<EventType>,
    /// `code` beside that type.
    pub code: Option<ShortText>,
    /// An `error` that is an object or a text.
    pub error: Option<ErrorFacts>,
    /// There is a choice among the `choices`.
    pub choice: bool,
    /// The list of `choices` was closed.
    pub choices_over: bool,
    /// The answer says something: text, a call, a refusal.
    pub content: bool,
    /// How much text the model said in it.
    pub said: SaidText,
    /// The last `finish_reason`, `stop_reason`, `finishReason` or `blockReason` that is not empty.
    pub finish: Option<ShortText>,
    /// The document was closed.
    pub complete: bool,
    /// It could not be followed; what stands here is from before that.
    pub malformed: bool,
}

impl ReplyFacts {
    /// A container opens at a known place.
    #[inline(always)]
    pub(super) fn open(&mut self, place: Place, object: bool) {
        match place {
            Place::Error if object => self.begin_error(),
            Place::Content => self.content |= object,
            Place::Choice => self.choice = true,
            Place::Usage | Place::GeminiUsage => self.usage.flags.insert(UsageFlags::UNFINISHED),
            Place::Count(field) => self.usage.refuse(field, UsageFlags::NOT_A_NUMBER),
            _ => {}
        }
    }

    /// A container at a known place closes.
    #[inline(always)]
    pub(super) fn close(&mut self, place: Place) {
        match place {
            Place::Usage | Place::GeminiUsage => self.usage.flags.remove(UsageFlags::UNFINISHED),
            Place::Choices => self.choices_over = true,
            _ => {}
        }
    }

    /// A string at a known place; `cut` if more was said.
    #[inline(always)]
    pub(super) fn text(&mut self, place: Place, text: &[u8], cut: bool) {
        match place {
            place if place.is_said() => self.say(text),
            Place::Error => self.begin_error(),
            Place::Count(field) => self.usage.refuse(field, UsageFlags::NOT_A_NUMBER),
            Place::Text(TextPlace::Event) => {
                let event = if cut { EventType::Other } else { EventType::of(text) };
                self.event = self.event.or(Some(event));
            }
            // Some servers write an empty reason into every chunk.
            Place::Text(TextPlace::Finish) if text.is_empty() => {}
            Place::Text(place) => self.keep(place, ShortText::of(text, cut)),
            _ => {}
        }
    }

    /// A piece of what the model said.
    #[inline(always)]
    pub(super) fn say(&mut self, text: &[u8]) {
        self.content |= !text.is_empty();
        self.said.add(text);
    }

    /// A number or literal at a known place; `cut` if more was said.
    #[inline(always)]
    pub(super) fn scalar(&mut self, place: Place, scalar: &[u8], cut: bool) {
        match place {
            // A scan that has it whole takes no more than one that has it in pieces.
            Place::Count(field) if cut || scalar.len() > TOKEN_MAX => {
                self.usage.refuse(field, UsageFlags::NOT_A_NUMBER);
            }
            Place::Count(_) if scalar == b"null" => {}
            Place::Count(field) => self.usage.read(field, scalar),
            Place::Text(place @ (TextPlace::ErrorCode | TextPlace::Code))
                if cut || scalar != b"null" =>
            {
                self.keep(place, ShortText::of(scalar, cut));
            }
            _ => {}
        }
    }

    /// The first error counts; later ones keep what it said.
    fn begin_error(&mut self) {
        self.error.get_or_insert_default();
    }

    #[inline(never)]
    fn keep(&mut self, place: TextPlace, text: ShortText) {
        match place {
            TextPlace::Event => {}
            TextPlace::Code => self.code = Some(text),
            TextPlace::Finish => self.finish = Some(text),
            TextPlace::ErrorCode => self.error.get_or_insert_default().code = Some(text),
            TextPlace::ErrorKind => self.error.get_or_insert_default().kind = Some(text),
            TextPlace::ErrorStatus => self.error.get_or_insert_default().status = Some(text),
        }
    }
}
