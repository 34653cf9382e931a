use super::svg::{Anchor, Element, Picture};
use crate::report::axis::Axis;
use crate::report::scene::{Gap, Lane, Level, Mark, Scene, Span, Tone};
use crate::report::wording::{ends, seconds};
use crate::time::{Bracket, Duration, Instant};

/// User units of the picture: it is scaled to the page.
const WIDTH: f64 = 1120.0;
/// Room for the lanes' names.
const GUTTER: f64 = 168.0;
/// Room at the right edge.
const RIGHT: f64 = 16.0;
const ROW: f64 = 30.0;
const BAR: f64 = 14.0;
const TOP: f64 = 26.0;
/// Width of a character of the small text, generous.
const LETTER: f64 = 6.8;

/// The whole run.
pub(super) fn whole(scene: &Scene) -> String {
    let axis = Axis::with_margin(scene.window, WIDTH - GUTTER - RIGHT);
    Chart::new(scene, axis).draw("Timeline of the whole run")
}

/// The stretch in which the verdict's events lie, when they lie so close together that the whole run hides them.
pub(super) fn decisive_seconds(scene: &Scene) -> Option<String> {
    // What was done to the run is not what came of it: the delete and everything before it stay out.
    let late = scene
        .decisive
        .iter()
        .filter(|d| d.at.lo.is_some_and(|lo| lo > scene.origin) && d.at.hi.is_some());
    let moments: Vec<Instant> = late.flat_map(|d| [d.at.lo, d.at.hi]).flatten().collect();
    let (first, last) = (*moments.iter().min()?, *moments.iter().max()?);
    let whole = scene.window.1 - scene.window.0;
    let room = (last - first).half().half().max(Duration::from_millis(20));
    let window = ((first - room).max(scene.window.0), (last + room).min(scene.window.1));
    if (window.1 - window.0).times(3) > whole {
        return None;
    }
    Some(
        Chart::new(scene, Axis::new(window, WIDTH - GUTTER - RIGHT))
            .draw("The part of the timeline in which the verdict's events lie"),
    )
}

struct Chart<'a> {
    scene: &'a Scene,
    axis: Axis,
    elements: Vec<Element>,
    y: f64,
}

impl<'a> Chart<'a> {
    fn new(scene: &'a Scene, axis: Axis) -> Self {
        Self {
            scene,
            axis,
            elements: Vec::new(),
            y: TOP,
        }
    }

    fn draw(mut self, what: &str) -> String {
        let (scene, axis) = (self.scene, self.axis);
        for decisive in scene.decisive.iter().filter(|d| touches(&axis, d.at, d.at)) {
            let note = format!(
                "{} {} ({})",
                decisive.event,
                ends(decisive.at, scene.origin),
                decisive.source
            );
            let mark = Mark {
                at: decisive.at,
                label: ends(decisive.at, scene.origin),
                tone: Tone::Accent,
                note,
            };
            self.row(&Lane {
                title: decisive.event.clone(),
                marks: vec![mark],
                ..Lane::default()
            });
        }
        if let Some(gap) = scene.gap {
            self.row(&gap_lane(gap));
        }
        if !scene.decisive.is_empty() {
            let y = self.y;
            self.elements.push(Element::Line {
                from: (0.0, y),
                to: (WIDTH, y),
                class: "rule",
            });
            self.y += 4.0;
        }
        for lane in scene.requests.iter().chain(&scene.lanes) {
            self.row(lane);
        }
        let mut elements = self.grid();
        elements.append(&mut self.elements);
        let rows = scene.decisive.len() + scene.requests.len() + scene.lanes.len();
        let description = format!("{what}: {rows} rows; the tables below say the same in words.");
        Picture {
            size: (WIDTH, self.y + 22.0),
            description,
            elements,
        }
        .to_string()
    }

    /// Ticks above and below, lines across, and the origin.
    fn grid(&self) -> Vec<Element> {
        let (bottom, mut elements) = (self.y, Vec::new());
        for tick in self.axis.ticks(self.scene.origin, 10) {
            let x = GUTTER + tick.position;
            let class = if tick.label == "0" { "origin" } else { "grid" };
            elements.push(Element::Line {
                from: (x, TOP - 6.0),
                to: (x, bottom),
                class,
            });
            for y in [TOP - 10.0, bottom + 14.0] {
                let text = format!("{} s", tick.label);
                elements.push(Element::Text {
                    at: (x, y),
                    anchor: Anchor::Middle,
                    class: "tick",
                    text,
                    title: String::new(),
                });
            }
        }
        elements
    }

    fn row(&mut self, lane: &Lane) {
        let shown = lane.spans.iter().any(|s| touches(&self.axis, s.from, s.until))
            || lane.marks.iter().any(|m| touches(&self.axis, m.at, m.at))
            || !lane.levels.is_empty();
        if !shown {
            return;
        }
        let middle = self.y + ROW / 2.0;
        let text = shortened(&lane.title);
        let title = lane.title.clone();
        self.elements.push(Element::Text {
            at: (GUTTER - 10.0, middle + 4.0),
            anchor: Anchor::End,
            class: "lane",
            text,
            title,
        });
        self.elements.push(Element::Line {
            from: (GUTTER, self.y + ROW),
            to: (WIDTH, self.y + ROW),
            class: "row",
        });
        self.levels(&lane.levels, middle);
        let mut taken = Vec::new();
        for span in &lane.spans {
            taken.extend(self.span(span, middle));
        }
        self.marks(&lane.marks, middle, &mut taken);
        if lane.left_out > 0 {
            let text = format!("{} more not drawn", lane.left_out);
            let at = (WIDTH - RIGHT, middle + 4.0);
            self.elements.push(Element::Text {
                at,
                anchor: Anchor::End,
                class: "label",
                text,
                title: String::new(),
            });
        }
        self.y += ROW;
    }

    fn x(&self, at: Instant) -> f64 {
        GUTTER + self.axis.position(at)
    }

    /// The sure part solid, what may or may not belong to it pale. Returns where its label stands.
    fn span(&mut self, span: &Span, middle: f64) -> Option<(f64, f64)> {
        if !touches(&self.axis, span.from, span.until) {
            return None;
        }
        let (left, right) = (GUTTER, WIDTH - RIGHT);
        let start = span.from.lo.map_or(left, |t| self.x(t));
        let sure_from = span.from.hi.map_or(start, |t| self.x(t));
        let end = span.until.hi.map_or(right, |t| self.x(t)).max(start + 1.0);
        let sure_until = span.until.lo.map_or(end, |t| self.x(t));
        let when = match (ends(span.from, self.scene.origin), ends(span.until, self.scene.origin)) {
            (from, until) if from == "not seen" => format!("until {until}"),
            (from, until) if until == "not seen" => format!("from {from}, its end was not seen"),
            (from, until) => format!("from {from} to {until}"),
        };
        let title = format!("{}: {when} {}", span.label, span.note).trim_end().to_owned();
        let tone = tone_class(span.tone);
        let bar = |x: f64, until: f64, class: String| Element::Rect {
            x,
            y: middle - BAR / 2.0,
            width: until - x,
            height: BAR,
            class,
            title: title.clone(),
        };
        self.elements.push(bar(start, end, format!("pale {tone}")));
        if sure_until > sure_from {
            self.elements.push(bar(sure_from, sure_until, format!("bar {tone}")));
        }
        // On the solid part only: pale and pale ink cannot be read.
        if (sure_until - sure_from - 10.0) / LETTER >= span.label.chars().count() as f64 {
            let at = (sure_from + 6.0, middle + 3.8);
            self.elements.push(Element::Text {
                at,
                anchor: Anchor::Start,
                class: "inside",
                text: span.label.clone(),
                title,
            });
        }
        Some((start, end))
    }

    /// A bracket as a bar with two ends, a narrow one as a point; labels where there is room.
    fn marks(&mut self, marks: &[Mark], middle: f64, taken: &mut Vec<(f64, f64)>) {
        let axis = self.axis;
        let shown: Vec<Placed<'_>> = marks
            .iter()
            .filter(|mark| mark.at != Bracket::OPEN && touches(&axis, mark.at, mark.at))
            .map(|mark| {
                let start = mark.at.lo.or(mark.at.hi).map_or(GUTTER, |t| self.x(t));
                let end = mark.at.hi.map_or(WIDTH - RIGHT, |t| self.x(t)).max(start);
                Placed { mark, start, end }
            })
            .collect();
        for placed in &shown {
            self.shape(placed, middle);
        }
        // Labels last, so that none covers a later mark.
        for (i, placed) in shown.iter().enumerate() {
            let others = shown
                .iter()
                .enumerate()
                .filter(|(j, _)| *j != i)
                .map(|(_, p)| (p.start - 5.0, p.end + 5.0));
            let busy: Vec<(f64, f64)> = others.chain(taken.iter().copied()).collect();
            taken.extend(self.label(placed, middle, &busy));
        }
    }

    fn shape(&mut self, placed: &Placed<'_>, middle: f64) {
        let Placed { mark, start, end } = *placed;
        let tone = tone_class(mark.tone);
        let title = format!("{} {}", mark.note, ends(mark.at, self.scene.origin));
        if end - start < 5.0 {
            let at = ((start + end) / 2.0, middle);
            self.elements.push(Element::Circle {
                at,
                radius: 4.0,
                class: format!("dot {tone}"),
                title,
            });
            return;
        }
        let class = format!("bracket {tone}");
        self.elements.push(Element::Rect {
            x: start,
            y: middle - 4.0,
            width: end - start,
            height: 8.0,
            class,
            title,
        });
        for x in [start, end] {
            self.elements.push(Element::Line {
                from: (x, middle - 7.0),
                to: (x, middle + 7.0),
                class: "cap",
            });
        }
    }

    /// Right of its mark, else left of it, else not at all; returns the room it took.
    fn label(&mut self, placed: &Placed<'_>, middle: f64, busy: &[(f64, f64)]) -> Option<(f64, f64)> {
        let width = placed.mark.label.chars().count() as f64 * LETTER;
        let free = |(from, until): (f64, f64)| {
            from >= GUTTER && until <= WIDTH && busy.iter().all(|(a, b)| until <= *a || from >= *b)
        };
        let right = (placed.end + 7.0, placed.end + 7.0 + width);
        let left = (placed.start - 7.0 - width, placed.start - 7.0);
        let (place, x, anchor) = if free(right) {
            (right, right.0, Anchor::Start)
        } else if free(left) {
            (left, left.1, Anchor::End)
        } else {
            return None;
        };
        let (text, title) = (placed.mark.label.clone(), placed.mark.note.clone());
        self.elements.push(Element::Text {
            at: (x, middle + 4.0),
            anchor,
            class: "label",
            text,
            title,
        });
        Some(place)
    }

    /// A polled number as steps; where it may have changed the step is pale.
    fn levels(&mut self, levels: &[Level], middle: f64) {
        let Some(most) = levels.iter().map(|l| l.value).reduce(f64::max) else {
            return;
        };
        let height = |value: f64| middle + 10.0 - 20.0 * value / most.max(1.0);
        let (mut points, mut before): (Vec<(f64, f64)>, Option<f64>) = (Vec::new(), None);
        for level in levels {
            let Some(at) = level.at.midpoint().or(level.at.hi).or(level.at.lo) else {
                continue;
            };
            if before == Some(level.value) {
                continue;
            }
            let x = self.x(at);
            if let Some(value) = before {
                points.push((x, height(value)));
                if let (Some(lo), Some(hi)) = (level.at.lo, level.at.hi) {
                    let (from, until) = (self.x(lo), self.x(hi));
                    let title = format!("{value} became {} {}", level.value, ends(level.at, self.scene.origin));
                    let class = "pale accent".to_owned();
                    self.elements.push(Element::Rect {
                        x: from,
                        y: middle - 10.0,
                        width: (until - from).max(1.0),
                        height: 20.0,
                        class,
                        title,
                    });
                }
            }
            points.push((x, height(level.value)));
            before = Some(level.value);
        }
        let last = levels.last().and_then(|l| l.at.hi.or(l.at.lo)).map(|t| self.x(t));
        if let (Some(value), Some(x)) = (before, last) {
            points.push((x, height(value)));
        }
        let area = points
            .first()
            .zip(points.last())
            .map(|(a, b)| ((a.0, height(0.0)), (b.0, height(0.0))));
        if let Some((first, last)) = area {
            let filled = std::iter::once(first)
                .chain(points.iter().copied())
                .chain([last])
                .collect();
            self.elements.push(Element::Path {
                points: filled,
                closed: true,
                class: "area",
            });
        }
        self.elements.push(Element::Path {
            points,
            closed: false,
            class: "steps",
        });
        let text = format!("{most}");
        self.elements.push(Element::Text {
            at: (GUTTER - 3.0, middle - 5.0),
            anchor: Anchor::End,
            class: "tick",
            text,
            title: String::new(),
        });
    }
}

/// A lane's name in the room that there is: of a long one the end tells more than the middle.
fn shortened(title: &str) -> String {
    let letters: Vec<char> = title.chars().collect();
    if letters.len() <= 21 {
        return title.to_owned();
    }
    let (head, tail) = (&letters[..7], &letters[letters.len() - 12..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

/// The measured interval as a bar: green when no work was left at DOWN, red when DOWN came first.
fn gap_lane(gap: Gap) -> Lane {
    let (zero, down) = (gap.active_zero, gap.lb_down);
    let (from, until, tone) = if zero.surely_before(down) {
        (zero, down, Tone::Good)
    } else if down.surely_before(zero) {
        (down, zero, Tone::Bad)
    } else {
        (zero, down, Tone::Unsure)
    };
    let length = |a: Option<Instant>, b: Option<Instant>| a.zip(b).map(|(a, b)| seconds((b - a).as_secs_f64()));
    let label = match (length(zero.hi, down.lo), length(zero.lo, down.hi)) {
        (Some(least), Some(most)) if least == most => least,
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "length not known".to_owned(),
    };
    let note = "active_zero to lb_down".to_owned();
    let span = Span {
        from,
        until,
        label,
        tone,
        note,
    };
    Lane {
        title: "active_zero..lb_down".to_owned(),
        spans: vec![span],
        ..Lane::default()
    }
}

/// A mark and where its bracket lies in the picture.
struct Placed<'a> {
    mark: &'a Mark,
    start: f64,
    end: f64,
}

/// Something of it may lie on the axis.
fn touches(axis: &Axis, from: Bracket, until: Bracket) -> bool {
    let (first, last) = axis.window();
    from.lo.or(from.hi).is_none_or(|t| t <= last) && until.hi.or(until.lo).is_none_or(|t| t >= first)
}

const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Unsure => "unsure",
        Tone::Plain => "plain",
        Tone::Accent => "accent",
    }
}
