//! The program as a process: what an operator starts, sees, asks and stops. Free ports and
//! loopback only; nothing here waits for a time to pass, every wait is for a line or an end.

#[cfg(test)]
mod check;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod first;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod kill_streams;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod over;
#[cfg(test)]
mod program;
#[cfg(test)]
mod round;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod tls;
