//! `tollgate keys …`: virtual keys of a running node, or of one that does not run.

use super::counted::counted;
use super::place::{Place, unusable};
use super::table::table;
use super::{EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE, output, socket};
use crate::control::desk::{self, Answer, Desk};
use crate::control::keys::{Asked, Keys, Selector};
use crate::control::ledger::{self, Entered};
use crate::shard::clock;
use clap::{Args, Subcommand};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use store::disk::Folder;

/// Columns of the words on the left.
const WORDS: usize = 12;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Make a key and print it: it is shown this once and kept nowhere
    Create {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        new: New,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// All keys
    List {
        #[command(flatten)]
        place: Place,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Everything about one key, with what is spent, held and left
    Show {
        #[command(flatten)]
        place: Place,
        /// `key_7`, 7, the key's name, or the beginning of its text
        key: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// End a key for good, from the next call on
    Revoke {
        #[command(flatten)]
        place: Place,
        /// `key_7`, 7, the key's name, or the beginning of its text
        key: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

/// A key to make. An absent limit is no limit, 0 lets nothing pass.
#[derive(Args, Debug)]
struct New {
    /// What people call it
    #[arg(long)]
    name: String,
    /// The number of its project
    #[arg(long, value_name = "N")]
    project: Option<u32>,
    /// Models it may use, with commas between; a * at the end stands for any ending
    #[arg(long, value_delimiter = ',')]
    models: Option<Vec<String>>,
    /// Requests a minute
    #[arg(long, value_name = "N")]
    rpm: Option<u32>,
    /// Calls in flight
    #[arg(long, value_name = "N")]
    concurrent: Option<u32>,
    /// Dollars, ever: 25.00
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    budget_total: Option<String>,
    /// Dollars a calendar month, UTC
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    budget_month: Option<String>,
    /// Holds cover the whole output cap of a call
    #[arg(long)]
    strict: bool,
    /// When it ends: an instant (RFC 3339) or a span from now on (30d, 12h)
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let done = match &arguments.what {
        What::Create { place, new, json } => create(place, new, *json),
        What::List { place, json } => list(place, *json),
        What::Show { place, key, json } => one(place, "GET", key, "", *json),
        What::Revoke { place, key, json } => one(place, "POST", key, "/revoke", *json),
    };
    done.unwrap_or_else(|why| unusable(&why))
}

fn create(place: &Place, new: &New, json: bool) -> Result<u8, String> {
    let asked = Asked {
        name: new.name.clone(),
        project: new.project,
        models: new.models.clone(),
        requests_per_minute: new.rpm,
        concurrent: new.concurrent,
        budget_total: new.budget_total.clone(),
        budget_month: new.budget_month.clone(),
        strict: new.strict,
        expires: new.expires.clone(),
    };
    let body = serde_json::to_string(&asked).map_err(|error| error.to_string())?;
    let answer = ask(place, "POST", "/keys", &body)?;
    Ok(tell(&answer, json, |made| {
        let text = made["text"].as_str().unwrap_or_default();
        let mut lines = vec![text.to_owned()];
        output::tell("This is the key. It is shown this once and kept nowhere:");
        lines.retain(|line| !line.is_empty());
        lines
    }))
}

fn list(place: &Place, json: bool) -> Result<u8, String> {
    let headings = ["key", "name", "prefix", "state", "rpm", "at once", "budgets", "expires"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    let mut after = Value::from(0);
    loop {
        let answer = ask(place, "GET", &format!("/keys?after={after}"), "")?;
        if answer.status >= 300 {
            return Ok(tell(&answer, json, |_| Vec::new()));
        }
        for key in answer.body["keys"].as_array().into_iter().flatten() {
            if json {
                output::say(&key.to_string());
            } else {
                rows.push(row(key));
            }
        }
        after = answer.body["next"].clone();
        if after.is_null() {
            break;
        }
    }
    if !json {
        table(&rows).iter().for_each(|line| output::say(line));
    }
    Ok(EXIT_OK)
}

fn one(place: &Place, method: &str, key: &str, what: &str, json: bool) -> Result<u8, String> {
    // Read here: of a key's whole text only the digest goes on.
    let selector = Selector::read(key).map_err(|fault| fault.to_string())?;
    let answer = ask(place, method, &format!("/keys/{}{what}", desk::encoded(&selector)), "")?;
    Ok(tell(&answer, json, lines))
}

/// Prints an answer; the exit code.
fn tell(answer: &Answer, json: bool, lines: impl Fn(&Value) -> Vec<String>) -> u8 {
    let good = answer.status < 300;
    if json {
        output::say(&answer.body.to_string());
    } else if good {
        lines(&answer.body).iter().for_each(|line| output::say(line));
    } else {
        let why = answer.body["error"]["message"].as_str().unwrap_or("it was refused");
        output::tell(&format!("tollgate: {why}"));
    }
    match answer.status {
        ..300 => EXIT_OK,
        400 => EXIT_UNUSABLE,
        _ => EXIT_FAILED,
    }
}

/// Asks the running node; if there is none, does it here.
fn ask(place: &Place, method: &str, target: &str, body: &str) -> Result<Answer, String> {
    let outline = place.outline()?;
    let state_dir = outline.state_dir.ok_or("no state_dir is configured")?;
    if let Some(answer) = socket::ask(&state_dir, method, target, body)? {
        return Ok(answer);
    }
    // To make a key is to make its node; to ask about one is not.
    if (method, target) != ("POST", "/keys") && !state_dir.join("state.redb").exists() {
        return Err(format!("{}: no tollgate has run here", state_dir.display()));
    }
    let (desk, _lock) = resting(&state_dir)?;
    Ok(desk.answer(method, target, body.as_bytes()))
}

/// The desk of a node that does not run, and the lock that keeps it from starting.
fn resting(state_dir: &Path) -> Result<(Desk, Entered), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", state_dir.display());
    let (state, node, lock) = ledger::enter(state_dir).map_err(|error| error.to_string())?;
    let checkpoint = state.checkpoint().map_err(|error| failed(&error))?;
    let balances = match Folder::existing(&state_dir.join("ledger")) {
        Ok(log) => store::query::balances(&log, node, checkpoint.as_ref()),
        Err(_) => Ok(checkpoint.map(|known| known.balances).unwrap_or_default()),
    };
    let balances = balances.map_err(|error| failed(&error))?;
    let keys = Keys::resting(state, balances, clock::now().wall);
    let keys = keys.map_err(|error| failed(&error))?;
    Ok((Desk::new(Arc::new(keys), None, clock::now), lock))
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn row(key: &Value) -> Vec<String> {
    let budgets = key["budgets"].as_array().into_iter().flatten();
    let budgets: Vec<String> = budgets
        .map(|b| format!("{} of {} {}", text(&b["spent"]), text(&b["limit"]), text(&b["period"])))
        .collect();
    let budgets = if budgets.is_empty() { "-".to_owned() } else { budgets.join(", ") };
    vec![
        text(&key["key"]),
        text(&key["name"]),
        text(&key["prefix"]),
        text(&key["state"]),
        text(&key["requests_per_minute"]),
        text(&key["concurrent"]),
        budgets,
        text(&key["expires"]),
    ]
}

fn lines(key: &Value) -> Vec<String> {
    let mut rows = vec![
        ("key", format!("{}, {}", text(&key["name"]), text(&key["key"]))),
        ("state", text(&key["state"])),
        ("prefix", text(&key["prefix"])),
        ("project", text(&key["project"])),
        ("created", text(&key["created"])),
        ("expires", text(&key["expires"])),
        ("models", models(&key["models"])),
        ("rpm", of(&key["requests_per_minute"], &key["requests_left"], "left now")),
        ("at once", of(&key["concurrent"], &key["in_flight"], "in flight")),
    ];
    for budget in key["budgets"].as_array().into_iter().flatten() {
        let (spent, held) = (text(&budget["spent"]), text(&budget["held"]));
        let (limit, left) = (text(&budget["limit"]), text(&budget["remaining"]));
        let resets = match &budget["resets"] {
            Value::Null => "does not reset".to_owned(),
            at => format!("resets {}", text(at)),
        };
        let period = text(&budget["period"]);
        let line = format!("{period} {limit}: {spent} spent, {held} held, {left} left, {resets}");
        rows.push(("budget", line));
    }
    let settled = &key["settled"];
    let (cost, upstream) = (text(&settled["cost"]), text(&settled["upstream_cost"]));
    let count = |what: &str| settled[what].as_u64().unwrap_or_default();
    let (calls, refusals) = (count("exchanges"), count("refusals"));
    let (calls, refusals) = (counted(calls, "call"), counted(refusals, "refusal"));
    rows.push(("settled", format!("{calls}, {cost}, {upstream} upstream; {refusals}")));
    rows.iter().map(|(word, value)| format!("{word:<WORDS$}{value}")).collect()
}

fn models(list: &Value) -> String {
    match list.as_array() {
        None => "all".to_owned(),
        Some(list) if list.is_empty() => "none".to_owned(),
        Some(list) => list.iter().map(text).collect::<Vec<_>>().join(", "),
    }
}

fn of(limit: &Value, now: &Value, what: &str) -> String {
    match limit {
        Value::Null => "no limit".to_owned(),
        limit => format!("{limit}, {} {what}", text(now)),
    }
}
