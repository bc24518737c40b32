//! The order of a request is told three times, by `mod` lines, by calls and by a drawing, and
//! must be the same each time: whoever reads one of them has read all three.
//!
//! The drawing is the fenced block marked `pipeline` in `docs/ARCHITECTURE.md`; each of its lines
//! that begins with a letter begins with the name of a stage.

use crate::code;
use crate::source::{Finding, Source};

/// Stages that run before the page is entered: they drive it, one request at a time.
const BEFORE_THE_PAGE: &[&str] = &["accept", "parse"];

const FENCE: &str = "```";
const DRAWING: &str = "docs/ARCHITECTURE.md";

pub(crate) fn check(page: &Source, drawing: &str) -> Vec<Finding> {
    let drawn = drawn_stages(drawing);
    if drawn.is_empty() {
        return vec![page.finding(0, format!("{DRAWING} has no fenced block marked `pipeline`"))];
    }
    let mut findings = modules_against(page, &drawn);
    findings.extend(calls_against(page, &drawn));
    findings
}

fn drawn_stages(drawing: &str) -> Vec<&str> {
    let block = drawing.split(FENCE).find(|block| block.starts_with("pipeline\n"));
    let lines = block.into_iter().flat_map(|block| block.lines().skip(1));
    lines
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

fn modules_against(page: &Source, drawn: &[&str]) -> Vec<Finding> {
    let modules = declared(&page.code);
    let is_drawn = |name: &str| drawn.contains(&name);
    let mut findings = Vec::new();
    for stage in drawn {
        if !modules.iter().any(|(_, name)| name == stage) {
            findings.push(page.finding(0, format!("`{stage}` is drawn but is no module here")));
        }
    }
    let staged: Vec<&str> =
        modules.iter().map(|(_, name)| name.as_str()).filter(|name| is_drawn(name)).collect();
    let expected: Vec<&str> = drawn.iter().copied().filter(|name| staged.contains(name)).collect();
    if staged != expected {
        let message = format!("`mod` order {staged:?}, the drawing has {expected:?}");
        findings.push(page.finding(0, message));
    }
    let last = modules.iter().rposition(|(_, name)| is_drawn(name)).unwrap_or_default();
    for (at, name) in modules.iter().take(last).filter(|(_, name)| !is_drawn(name)) {
        let message = format!("`{name}` is no stage of {DRAWING}: draw it, or put it below them");
        findings.push(page.finding(*at, message));
    }
    findings
}

fn calls_against(page: &Source, drawn: &[&str]) -> Vec<Finding> {
    let mut called: Vec<(usize, String)> = Vec::new();
    for (at, stage) in calls(&page.code, drawn) {
        if !called.iter().any(|(_, earlier)| *earlier == stage) {
            called.push((at, stage));
        }
    }
    let mut findings = Vec::new();
    for stage in drawn.iter().filter(|stage| !BEFORE_THE_PAGE.contains(stage)) {
        if !called.iter().any(|(_, name)| name == stage) {
            findings.push(page.finding(0, format!("stage `{stage}` is never called here")));
        }
    }
    let position = |name: &str| drawn.iter().position(|stage| *stage == name);
    for pair in called.windows(2) {
        let [(_, before), (at, after)] = pair else { continue };
        if position(before) > position(after) {
            let message =
                format!("`{after}` is called after `{before}`, the drawing has it before");
            findings.push(page.finding(*at, message));
        }
    }
    findings
}

/// `mod name;` lines that are not tests.
fn declared(code: &str) -> Vec<(usize, String)> {
    let tests = code::test_items(code);
    code::find_word(code, "mod")
        .filter(|at| !tests.iter().any(|(from, to)| (*from..*to).contains(at)))
        .map(|at| (at, word_at(code, at + "mod".len())))
        .collect()
}

fn word_at(code: &str, at: usize) -> String {
    let letters = code::rest(code, at).chars();
    letters.take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

struct Function {
    name: String,
    from: usize,
    to: usize,
}

/// Stage calls in the order in which they happen: a call of a function of this page counts as
/// the calls inside it.
fn calls(code: &str, drawn: &[&str]) -> Vec<(usize, String)> {
    let tests = code::test_items(code);
    let functions: Vec<Function> = code::find_word(code, "fn")
        .filter(|at| !tests.iter().any(|(from, to)| (*from..*to).contains(at)))
        .map(|at| Function {
            name: word_at(code, at + "fn".len()),
            from: at + "fn".len(),
            to: code::item_end(code, at),
        })
        .collect();
    let mut out = Vec::new();
    for (index, function) in functions.iter().enumerate() {
        let entry = !functions.iter().enumerate().any(|(other, caller)| {
            other != index && local_calls(code, caller, function).next().is_some()
        });
        if entry {
            walk(code, &functions, function, drawn, &mut Vec::new(), &mut out);
        }
    }
    out
}

fn walk(
    code: &str,
    functions: &[Function],
    function: &Function,
    drawn: &[&str],
    open: &mut Vec<usize>,
    out: &mut Vec<(usize, String)>,
) {
    if open.contains(&function.from) {
        return;
    }
    open.push(function.from);
    let mut events: Vec<(usize, Option<&Function>, String)> = Vec::new();
    for callee in functions {
        let calls = local_calls(code, function, callee);
        events.extend(calls.map(|at| (at, Some(callee), String::new())));
    }
    for path in code::paths(&code[function.from..function.to]) {
        let stage = path.segments.iter().rev().skip(1).find(|part| drawn.contains(&part.as_str()));
        events.extend(stage.map(|stage| (function.from + path.at, None, stage.clone())));
    }
    events.sort_by_key(|(at, ..)| *at);
    for (at, callee, stage) in events {
        match callee {
            Some(callee) => walk(code, functions, callee, drawn, open, out),
            None => out.push((at, stage)),
        }
    }
    open.pop();
}

/// Where `caller` calls `callee` by its plain name.
fn local_calls<'c>(
    code: &'c str,
    caller: &'c Function,
    callee: &'c Function,
) -> impl Iterator<Item = usize> + 'c {
    let body = &code[caller.from..caller.to];
    code::find_word(body, &callee.name).map(|at| caller.from + at).filter(|at| {
        let before = code[..*at].trim_end();
        let called = code::rest(code, at + callee.name.len()).starts_with('(');
        called && !before.ends_with("::") && !before.ends_with('.') && *at > caller.from + 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "
        pub mod accept;
        mod parse;
        mod admit;
        mod relay;
        mod settle;
        mod refuse;
        #[cfg(test)]
        mod tests;
        pub async fn run() -> Ending {
            let outcome = match serve(x).await { Ok(o) => o, Err(r) => refuse::answer(r).await };
            settle::close(outcome)
        }
        async fn serve() { admit::gate()?; Ok(relay::pump().await) }
    ";
    const DRAWN: &str = "text\n\n```pipeline\naccept   in\nparse\nadmit ─► refuse\n  (pure)\n\
                         relay\nsettle\n```\n";

    fn messages(page: &str, drawing: &str) -> Vec<String> {
        let page = Source::new("proxy/src/pipeline/mod.rs", page);
        check(&page, drawing).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn one_order_told_three_times_passes() {
        assert_eq!(messages(PAGE, DRAWN), Vec::<String>::new());
    }

    #[test]
    fn a_missing_drawing_fails() {
        assert_eq!(messages(PAGE, "").len(), 1);
        assert_eq!(messages(PAGE, "```text\naccept\n```").len(), 1);
    }

    #[test]
    fn modules_in_another_order_fail() {
        let swapped = PAGE.replace("mod admit;\n        mod relay;", "mod relay;\n mod admit;");
        assert!(messages(&swapped, DRAWN)[0].contains("`mod` order"));
    }

    #[test]
    fn calls_in_another_order_fail_also_through_a_function_of_the_page() {
        let swapped =
            PAGE.replace("admit::gate()?; Ok(relay::pump().await)", "relay::p(); admit::g()");
        assert_eq!(messages(&swapped, DRAWN).len(), 1);
        let early = PAGE.replace("let outcome", "settle::close(y); let outcome");
        assert_eq!(messages(&early, DRAWN).len(), 1);
    }

    #[test]
    fn a_stage_that_is_drawn_must_exist_and_be_called() {
        let more = DRAWN.replace("relay\n", "guard\nrelay\n");
        assert_eq!(messages(PAGE, &more).len(), 2);
        let uncalled = PAGE.replace("admit::gate()?;", "");
        assert_eq!(messages(&uncalled, DRAWN), ["stage `admit` is never called here"]);
    }

    #[test]
    fn a_module_between_the_stages_must_be_drawn() {
        let between = PAGE.replace("mod relay;", "mod extra;\nmod relay;");
        assert!(messages(&between, DRAWN)[0].contains("`extra` is no stage"));
        let below = PAGE.replace("mod refuse;", "mod refuse;\nmod route;");
        assert_eq!(messages(&below, DRAWN), Vec::<String>::new());
    }
}
