//! Tokens as an upstream reports them, in each dialect's words.

use crate::dice::Dice;
use crate::world::Dialect;

/// Tokens, each in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) fresh: u32,
    pub(crate) cached: u32,
    /// Written to a cache; messages alone say so.
    pub(crate) written: u32,
    pub(crate) output: u32,
}

/// Fresh, cached and written input, and output.
pub(crate) type Buckets = (u32, u32, u32, u32);

impl Usage {
    pub(crate) fn draw(dialect: Dialect, dice: &mut Dice) -> Usage {
        let mut some = |percent| match dice.percent(percent) {
            true => dice.log_between(1, 20_000) as u32,
            false => 0,
        };
        let (fresh, cached) = (some(95).max(1), some(30));
        let written = if dialect == Dialect::Messages { some(20) } else { 0 };
        Usage { fresh, cached, written, output: dice.log_between(1, 6_000) as u32 }
    }

    pub(crate) fn buckets(self) -> Buckets {
        (self.fresh, self.cached, self.written, self.output)
    }

    /// The member's value, with this output.
    pub(crate) fn json(self, dialect: Dialect) -> String {
        let Usage { fresh, cached, written, output } = self;
        if dialect == Dialect::Messages {
            return format!(
                "{{\"input_tokens\":{fresh},\"cache_creation_input_tokens\":{written},\
                 \"cache_read_input_tokens\":{cached},\"output_tokens\":{output}}}"
            );
        }
        let prompt = fresh + cached;
        let details = match cached {
            0 => String::new(),
            _ => format!(",\"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}"),
        };
        format!(
            "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{output},\
             \"total_tokens\":{}{details}}}",
            prompt + output
        )
    }

    /// What a report that breaks off can have told of the input.
    pub(crate) fn parts(self) -> Vec<(u32, u32, u32)> {
        let Usage { fresh, cached, written, .. } = self;
        vec![
            (fresh + cached, 0, 0),
            (fresh, cached, 0),
            (fresh, 0, 0),
            (fresh, 0, written),
            (fresh, cached, written),
        ]
    }
}
