use super::ink::{Colour, Sheet};
use crate::report::Document;
use crate::report::axis::Axis;
use crate::report::scene::{Lane, Scene};
use crate::report::wording::ends;
use crate::time::Bracket;

/// With less room than this for the lanes, the numbers alone say it better.
const LEAST_COLUMNS: usize = 24;

/// More rows than this are the page's matter.
const MOST_ROWS: usize = 16;

/// One line of the picture.
struct Row {
    colour: Colour,
    name: String,
    /// An event, or with a second bracket something that lasts.
    items: Vec<(Bracket, Option<Bracket>)>,
    numbers: String,
}

/// Draws the requests and the events that decided: `(==]` is where an event can have happened, `#` a request in flight.
pub(super) fn draw(sheet: &mut Sheet, document: &Document) {
    let Some(scene) = Scene::of(document) else { return };
    let mut rows: Vec<Row> = scene
        .requests
        .iter()
        .filter_map(|lane| request_row(lane, &scene))
        .collect();
    rows.extend(scene.decisive.iter().map(|decisive| Row {
        colour: Colour::Plain,
        name: decisive.event.clone(),
        items: vec![(decisive.at, None)],
        numbers: ends(decisive.at, scene.origin),
    }));
    if rows.is_empty() {
        return;
    }
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let longest = |of: fn(&Row) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let names = longest(|row| &row.name).min(26) + 2;
    let numbers = longest(|row| &row.numbers) + 2;
    let columns = sheet.width().saturating_sub(names + numbers + 2);
    sheet.heading(&format!("when, in seconds from {}", document.origin_name()));
    if columns < LEAST_COLUMNS {
        for row in &rows {
            sheet.row(row.colour, &format!("  {}", row.name), names + 2, &row.numbers);
        }
        return;
    }
    let moments = rows.iter().flat_map(|row| &row.items).flat_map(|(from, until)| {
        let until = until.unwrap_or(*from);
        [from.lo, from.hi, until.lo, until.hi]
    });
    let known: Vec<_> = moments.flatten().collect();
    let (Some(first), Some(last)) = (known.iter().min(), known.iter().max()) else {
        return;
    };
    let axis = Axis::new((*first, *last), (columns - 1) as f64);
    for row in &rows {
        let mut cells = vec![' '; columns];
        for (from, until) in &row.items {
            paint(&mut cells, &axis, *from, *until);
        }
        let picture: String = cells.into_iter().collect();
        sheet.row(
            row.colour,
            &format!("  {}", row.name),
            names + 2,
            &format!("{picture}  {}", row.numbers),
        );
    }
    scale(sheet, &axis, &scene, names, columns);
    if left_out > 0 {
        sheet.line(&format!("  {left_out} more in report.html"));
    }
}

/// One row a request, all its attempts in it.
fn request_row(lane: &Lane, scene: &Scene) -> Option<Row> {
    let (first, last) = (lane.spans.first()?, lane.spans.last()?);
    let whole = Bracket {
        lo: first.from.lo.or(first.from.hi),
        hi: last.until.hi.or(last.until.lo),
    };
    let spans = lane.spans.iter().map(|span| (span.from, Some(span.until))).collect();
    Some(Row {
        colour: first.tone.into(),
        name: lane.title.clone(),
        items: spans,
        numbers: ends(whole, scene.origin),
    })
}

/// An event as `(==]`, or `|` where it fits one column; a span as `#`, with `=` where it may or may not have been there.
fn paint(cells: &mut [char], axis: &Axis, from: Bracket, until: Option<Bracket>) {
    let last = cells.len() - 1;
    let column = |at: crate::time::Instant| (axis.position(at).round() as usize).min(last);
    let start = from.lo.map_or(0, column);
    let Some(until) = until else {
        let end = from.hi.map_or(last, column);
        fill(cells, start, end, '=');
        if start == end {
            cells[start] = '|';
        } else {
            cells[start] = if from.lo.is_some() { '(' } else { '<' };
            cells[end] = if from.hi.is_some() { ']' } else { '>' };
        }
        return;
    };
    let end = until.hi.map_or(last, column);
    fill(cells, start, end, '=');
    fill(cells, from.hi.map_or(start, column), until.lo.map_or(end, column), '#');
    if from.lo.is_none() {
        cells[start] = '<';
    }
    if until.hi.is_none() {
        cells[end] = '>';
    }
}

fn fill(cells: &mut [char], start: usize, end: usize, with: char) {
    if start <= end {
        cells[start..=end].fill(with);
    }
}

/// The ticks below the lanes, labels only where they do not touch.
fn scale(sheet: &mut Sheet, axis: &Axis, scene: &Scene, names: usize, columns: usize) {
    let mut line = vec!['.'; columns];
    let mut labels = vec![' '; columns + 8];
    let mut free_from = 0;
    for tick in axis.ticks(scene.origin, columns / 10) {
        let at = (tick.position.round() as usize).min(columns - 1);
        line[at] = '+';
        let start = at.saturating_sub(tick.label.len() / 2).max(free_from);
        if start <= at && start + tick.label.len() <= labels.len() {
            for (i, c) in tick.label.chars().enumerate() {
                labels[start + i] = c;
            }
            free_from = start + tick.label.len() + 1;
        }
    }
    for cells in [line, labels] {
        sheet.row(Colour::Plain, "", names + 2, &cells.into_iter().collect::<String>());
    }
}
