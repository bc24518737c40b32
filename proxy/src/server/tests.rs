//! Who may listen where, and that every shard's listener gets its share.

use super::*;
use std::net::{Ipv4Addr, TcpStream};

/// Connections of which two listeners get none with a chance of one in 2^63.
const CONNECTIONS: usize = 64;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn refused(address: SocketAddr) -> bool {
    matches!(bind(address, 2), Err(error) if error.kind() == io::ErrorKind::AddrInUse)
}

#[test]
fn the_listeners_of_a_node_share_a_port_that_another_node_is_refused() {
    let listeners = bind(ANY_PORT, 2).unwrap();
    let data = listeners[0].local_addr().unwrap();
    assert_eq!(listeners[1].local_addr().unwrap(), data);
    assert!(refused(data));
    let everywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), data.port());
    assert!(refused(everywhere), "every address is this one too");

    let clients: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(data).unwrap()).collect();
    listeners.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
    let mut shares = [0; 2];
    while shares.iter().sum::<usize>() < clients.len() {
        for (share, listener) in shares.iter_mut().zip(&listeners) {
            *share += usize::from(listener.accept().is_ok());
        }
    }
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
}

#[test]
fn a_node_that_has_stopped_listening_is_in_nobody_s_way() {
    let listeners = bind(ANY_PORT, 2).unwrap();
    let data = listeners[0].local_addr().unwrap();
    let client = TcpStream::connect(data).unwrap();
    listeners.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
    let open = loop {
        if let Some((open, _)) = listeners.iter().find_map(|listener| listener.accept().ok()) {
            break open;
        }
    };

    // It drains: as the shards do it, with the descriptors and a connection still open.
    for listener in &listeners {
        socket2::SockRef::from(listener).shutdown(std::net::Shutdown::Both).unwrap();
    }
    let next = bind(data, 2).unwrap();
    assert!(refused(data));
    drop((next, listeners));
    // Our side ends first, and the kernel remembers the connection.
    drop(open);
    drop(client);
    assert!(bind(data, 2).is_ok());
}
