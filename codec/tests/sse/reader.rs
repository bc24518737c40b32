//! A reader by WHATWG HTML 9.2.6 on top of the splitter: what a client would be given.

use codec::sse::Field;
use codec::sse::split_proof::LineRead;

/// An event as a client is given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dispatched {
    pub(crate) event: String,
    pub(crate) data: String,
    pub(crate) id: String,
}

/// What a client is given by these lines.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) events: Vec<Dispatched>,
    pub(crate) retries: Vec<u64>,
    event: String,
    data: Option<String>,
    id: String,
}

impl Reader {
    pub(crate) fn of(lines: &[LineRead]) -> Self {
        let mut reader = Self::default();
        lines.iter().for_each(|(field, value)| reader.line(*field, value));
        reader
    }

    fn line(&mut self, field: Option<Field>, value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        match field {
            None => self.blank(),
            Some(Field::Data) => match &mut self.data {
                None => self.data = Some(text.into_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(&text);
                }
            },
            Some(Field::Event) => self.event = text.into_owned(),
            Some(Field::Id) if value.contains(&0) => {}
            Some(Field::Id) => self.id = text.into_owned(),
            Some(Field::Retry) => {
                if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
                    self.retries.push(text.parse().expect("digits"));
                }
            }
            Some(Field::Comment | Field::Unknown) => {}
        }
    }

    /// Also what a reader does that takes the end of the stream for a blank line.
    pub(crate) fn blank(&mut self) {
        let event = std::mem::take(&mut self.event);
        if let Some(data) = self.data.take() {
            let event = if event.is_empty() { "message".to_owned() } else { event };
            self.events.push(Dispatched { event, data, id: self.id.clone() });
        }
    }
}
