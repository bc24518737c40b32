//! The keys of a request body that mean something to us, as one table.
//!
//! *Judged* keys must stand once and unescaped, because a second reading of them upstream would
//! change what is run or what it costs. For the same reason a spelling of them that differs in
//! the case of ASCII letters is refused: some upstreams take keys in any case. The others are
//! hints: they may repeat, the last one counts, but an escaped spelling of them is refused too,
//! or a body could hide its text from the estimate.

macro_rules! request_keys {
    ($($variant:ident $name:literal $judged:literal $doc:literal;)*) => {
        /// A key of a request body that we read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RequestKey {
            $(#[doc = $doc] $variant,)*
        }

        impl RequestKey {
            /// The key as it is written.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether it has to stand once.
            pub(super) const fn is_judged(self) -> bool {
                match self { $(Self::$variant => $judged,)* }
            }

            pub(super) fn duplicate_message(self) -> &'static str {
                match self { $(Self::$variant => concat!("the key ", $name, " stands twice"),)* }
            }

            pub(super) fn escaped_message(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("the key ", $name, " must be spelled plainly"),)*
                }
            }

            pub(super) fn miscased_message(self) -> &'static str {
                match self {
                    $(Self::$variant =>
                        concat!("the key ", $name, " must be spelled in lower case"),)*
                }
            }

            /// Every key.
            const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The top-level key of this spelling; `include_usage` and `user_id` are not.
            pub(super) fn top_level(name: &[u8]) -> Option<Self> {
                if !Self::is_length(name, Self::LENGTHS) {
                    return None;
                }
                Self::any(name).filter(|key| !matches!(key, Self::IncludeUsage | Self::UserId))
            }

            fn any(name: &[u8]) -> Option<Self> {
                $(if name == $name.as_bytes() { return Some(Self::$variant); })*
                None
            }
        }
    };
}

request_keys! {
    Model "model" true "The model asked for.";
    Messages "messages" false "Text that is counted.";
    Stream "stream" true "Whether the answer is a stream.";
    StreamOptions "stream_options" true "Holds `include_usage`.";
    IncludeUsage "include_usage" true "Inside `stream_options`.";
    MaxTokens "max_tokens" true "An output cap.";
    MaxCompletionTokens "max_completion_tokens" true "An output cap.";
    MaxOutputTokens "max_output_tokens" true "An output cap.";
    N "n" true "How many answers are asked for.";
    System "system" false "Text that is counted.";
    Tools "tools" false "Text that is counted.";
    Functions "functions" false "The older spelling of tools; counted like them.";
    Input "input" false "Text that is counted.";
    User "user" false "A hint who asks.";
    PromptCacheKey "prompt_cache_key" false "A session hint.";
    Metadata "metadata" false "Holds `user_id`.";
    UserId "user_id" false "Inside `metadata`, a session hint.";
    CacheControl "cache_control" false "A caching mark.";
}

impl RequestKey {
    /// Lengths of keys and of judged keys, one bit each: most other keys are known for what they
    /// are by their length alone.
    const LENGTHS: u32 = Self::lengths(false);
    const JUDGED_LENGTHS: u32 = Self::lengths(true);

    const fn lengths(judged: bool) -> u32 {
        let (mut lengths, mut index) = (0, 0);
        while index < Self::ALL.len() {
            let key = Self::ALL[index];
            if key.is_judged() || !judged {
                lengths |= 1 << key.name().len();
            }
            index += 1;
        }
        lengths
    }

    fn is_length(name: &[u8], lengths: u32) -> bool {
        u32::try_from(name.len())
            .is_ok_and(|length| lengths.checked_shr(length).is_some_and(|rest| rest & 1 == 1))
    }

    /// Whether strings below this top-level key are counted as text (DESIGN §16.11).
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Self::Messages | Self::System | Self::Tools | Self::Functions | Self::Input)
    }

    /// The key of this spelling inside the object under the top-level key `parent`.
    pub(super) fn below(parent: Self, name: &[u8]) -> Option<Self> {
        match (parent, name) {
            (Self::StreamOptions, b"include_usage") => Some(Self::IncludeUsage),
            (Self::Metadata, b"user_id") => Some(Self::UserId),
            _ => None,
        }
    }

    /// The judged key that `name`, which is none, is but for the case of its letters: of the top
    /// level, or of the object under `parent`.
    pub(super) fn miscased(parent: Option<Self>, name: &[u8]) -> Option<Self> {
        if !Self::is_length(name, Self::JUDGED_LENGTHS) {
            return None;
        }
        let is_it =
            |key: &&Self| key.is_judged() && name.eq_ignore_ascii_case(key.name().as_bytes());
        let key = *Self::ALL.iter().find(is_it)?;
        let home = if key == Self::IncludeUsage { Some(Self::StreamOptions) } else { None };
        (home == parent).then_some(key)
    }

    /// Whether keys one level below this top-level key are read.
    pub(super) fn has_keys_below(self) -> bool {
        matches!(self, Self::StreamOptions | Self::Metadata)
    }

    pub(super) fn bit(self) -> u32 {
        1 << (self as u32)
    }
}
