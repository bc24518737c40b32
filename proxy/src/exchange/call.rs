//! What a client asked for: the route, as far as the head says it, and the facts that every
//! judgement about the call rests on.

use super::bundle::Bundle;
use super::demand::Demand;

/// The wire dialect of a route: decides the shape of errors and, later, of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI chat completions, and every other OpenAI route.
    Chat,
    /// Anthropic messages.
    Messages,
    /// OpenAI responses.
    Responses,
    /// Google Gemini.
    Gemini,
}

impl Dialect {
    /// Its number in records, for ever.
    pub fn number(self) -> u8 {
        match self {
            Dialect::Chat => 1,
            Dialect::Messages => 2,
            Dialect::Responses => 3,
            Dialect::Gemini => 4,
        }
    }

    /// The name of the dialect of a number.
    pub fn name_of(number: u8) -> Option<&'static str> {
        Some(match number {
            1 => "chat",
            2 => "messages",
            3 => "responses",
            4 => "gemini",
            _ => return None,
        })
    }
}

/// A route of the data port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// `POST /v1/chat/completions`.
    ChatCompletions,
    /// `POST /v1/messages`.
    Messages,
    /// `POST /v1/messages/count_tokens`.
    CountTokens,
    /// `GET /v1/models`.
    Models,
    /// `GET /healthz`, `/readyz`, `/startupz`.
    Health(Health),
    /// Known, not served yet: 501 in the route's dialect.
    Unserved(Dialect),
    /// `POST /v1/responses`, which clients also try to upgrade.
    Responses,
}

/// The health routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The process runs.
    Live,
    /// It takes calls.
    Ready,
    /// It has started.
    Started,
}

impl Route {
    /// The dialect its errors speak.
    pub fn dialect(self) -> Dialect {
        match self {
            Route::ChatCompletions | Route::Models | Route::Health(_) => Dialect::Chat,
            Route::Messages | Route::CountTokens => Dialect::Messages,
            Route::Responses => Dialect::Responses,
            Route::Unserved(dialect) => dialect,
        }
    }

    /// Its name in metrics: bounded, never a client's text.
    pub fn name(self) -> &'static str {
        match self {
            Route::ChatCompletions => "chat_completions",
            Route::Messages => "messages",
            Route::CountTokens => "count_tokens",
            Route::Models => "models",
            Route::Health(_) => "health",
            Route::Unserved(_) => "unserved",
            Route::Responses => "responses",
        }
    }

    /// Its number in records, for ever.
    pub fn number(self) -> u16 {
        match self {
            Route::ChatCompletions => 1,
            Route::Messages => 2,
            Route::CountTokens => 3,
            Route::Models => 4,
            Route::Health(_) => 5,
            Route::Unserved(_) => 6,
            Route::Responses => 7,
        }
    }

    /// The name of the route of a number; `None` if the record does not say.
    pub fn name_of(number: u16) -> Option<&'static str> {
        Some(match number {
            1 => "chat_completions",
            2 => "messages",
            3 => "count_tokens",
            4 => "models",
            5 => "health",
            6 => "unserved",
            7 => "responses",
            _ => return None,
        })
    }

    /// Its path at a provider of its dialect, behind the base URL; `None` if it is answered here.
    pub fn upstream_path(self) -> Option<&'static str> {
        match self {
            Route::ChatCompletions => Some("/chat/completions"),
            Route::Messages => Some("/v1/messages"),
            Route::CountTokens => Some("/v1/messages/count_tokens"),
            Route::Models | Route::Health(_) | Route::Unserved(_) | Route::Responses => None,
        }
    }

    /// Whether its calls cost nothing: they have no part in rates and budgets, and no record.
    pub fn is_free(self) -> bool {
        matches!(self, Route::CountTokens)
    }
}

/// The immutable facts of a call that the layers judge.
#[derive(Clone, Copy, Debug)]
pub struct Call<'r> {
    /// All that holds for its key.
    pub bundle: &'r Bundle,
    /// What it asks for.
    pub demand: Demand,
}
