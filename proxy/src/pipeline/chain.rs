//! The gateways that a call has come through before this one. Each tells the next its own name, in
//! the id it gives the call, and behind that the names it was told: so a call that comes back is
//! known to every gateway of the circle, also where each of them sees but its neighbours.
//!
//! It deliberately believes a name for this alone: who forges one is refused, or served as ever.
//!
//! Bound: [`HOPS_MAX`] names. A call that has come through more goes in a circle of strangers.

use crate::exchange::ids::{NODE_TEXT, RequestId, node_text};

/// What the names go on under.
pub(super) const FIELD: &[u8] = b"x-tollgate-via";

/// Gateways that a call may have come through: two are a team's and a company's.
const HOPS_MAX: usize = 8;

/// What a request says of where it comes from.
#[derive(Default)]
pub(super) struct Chain {
    attempt: bool,
    id: Option<RequestId>,
    names: [[u8; NODE_TEXT]; HOPS_MAX],
    count: usize,
}

impl Chain {
    /// Looks at a field in our name.
    pub(super) fn note(&mut self, name: &[u8], value: &[u8]) {
        if name.eq_ignore_ascii_case(b"x-tollgate-attempt") {
            self.attempt = true;
        } else if name.eq_ignore_ascii_case(b"x-tollgate-request-id") {
            self.id = str::from_utf8(value).ok().and_then(RequestId::parse);
        } else if name.eq_ignore_ascii_case(FIELD) {
            value.split(|byte| *byte == b',').for_each(|name| self.add(name.trim_ascii()));
        }
    }

    /// The gateway it comes from, if it comes from one: only a gateway sends both.
    fn sender(&self) -> Option<[u8; NODE_TEXT]> {
        self.id.filter(|_| self.attempt).map(|id| node_text(id.node()))
    }

    fn add(&mut self, name: &[u8]) {
        let Ok(name) = <[u8; NODE_TEXT]>::try_from(name) else { return };
        if !name.iter().all(|letter| (b'a'..=b'p').contains(letter)) {
            return;
        }
        if let Some(place) = self.names.get_mut(self.count) {
            *place = name;
        }
        self.count = self.count.saturating_add(1);
    }

    fn names(&self) -> &[[u8; NODE_TEXT]] {
        self.names.get(..self.count).unwrap_or(&self.names)
    }

    /// Whether the call has come through this node before, or through more than any chain has.
    pub(super) fn is_round(&self, node: [u8; 3]) -> bool {
        let Some(sender) = self.sender() else { return false };
        let own = node_text(node);
        sender == own || self.names().contains(&own) || self.count >= HOPS_MAX
    }

    /// Appends the line that goes on; nothing for a call that comes from no gateway.
    pub(super) fn write(&self, forward: &mut Vec<u8>) {
        let Some(sender) = self.sender() else { return };
        forward.extend_from_slice(FIELD);
        forward.extend_from_slice(b": ");
        for name in self.names() {
            forward.extend_from_slice(name);
            forward.push(b',');
        }
        forward.extend_from_slice(&sender);
        forward.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(node: u8) -> RequestId {
        RequestId([0, 0, 0, 0, 0, 0, node, node, node, 0, 0, 0, 0, 0, 0, 1])
    }

    /// What a gateway makes of a call that has come through these, the last of them its sender.
    fn chain(nodes: &[u8]) -> Chain {
        let (last, before) = nodes.split_last().unwrap();
        let mut chain = Chain::default();
        let names = before.iter().map(|node| node_text([*node; 3]));
        let names: Vec<Vec<u8>> = names.map(|name| name.to_vec()).collect();
        chain.note(b"X-Tollgate-Via", &names.join(&b", "[..]));
        chain.note(b"x-tollgate-request-id", &id(*last).text());
        chain.note(b"x-tollgate-attempt", b"1");
        chain
    }

    #[test]
    fn whoever_has_seen_a_call_knows_it_again() {
        let seen = chain(&[1, 2, 3]);
        assert!([1, 2, 3].iter().all(|node| seen.is_round([*node; 3])));
        assert!(!seen.is_round([4; 3]));
        let mut line = Vec::new();
        seen.write(&mut line);
        assert_eq!(line, b"x-tollgate-via: ababab,acacac,adadad\r\n");
    }

    #[test]
    fn a_circle_of_strangers_ends_too() {
        let nodes: Vec<u8> = (1..=9).collect();
        assert!(!chain(&nodes[..8]).is_round([99; 3]));
        assert!(chain(&nodes).is_round([99; 3]));
        let mut line = Vec::new();
        chain(&[7; 200]).write(&mut line);
        assert!(line.len() < 100, "{}", line.len());
    }

    #[test]
    fn a_caller_that_is_no_gateway_names_nobody() {
        for missing in ["x-tollgate-attempt", "x-tollgate-request-id"] {
            let mut chain = Chain::default();
            chain.note(b"x-tollgate-via", b"ababab");
            match missing {
                "x-tollgate-attempt" => chain.note(b"x-tollgate-request-id", &id(1).text()),
                _ => chain.note(b"x-tollgate-attempt", b"1"),
            }
            assert!(!chain.is_round([1; 3]), "without {missing}");
            let mut line = Vec::new();
            chain.write(&mut line);
            assert!(line.is_empty(), "without {missing}");
        }
    }

    #[test]
    fn what_is_no_name_goes_nowhere() {
        let mut chain = chain(&[5]);
        chain.note(b"x-tollgate-via", b"ababaz, abab,,evil\x01, aBabab, ababababab");
        let mut line = Vec::new();
        chain.write(&mut line);
        assert_eq!(line, b"x-tollgate-via: afafaf\r\n");
    }
}
