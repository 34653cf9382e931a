use serde_json::{Map, Value};

/// The three numbers of `intervals.json`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Intervals {
    /// From the drain to the settled zero.
    pub drain_to_active_zero: Interval,
    /// From the settled zero to DOWN: the sign is the verdict's question.
    pub active_zero_to_lb_down: Interval,
    /// From DOWN to the first reset of a request's connection.
    pub lb_down_to_first_rst: Interval,
}

/// A length of time in seconds as far as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    /// Difference of the brackets' midpoints; `None` when it was not measured.
    pub value_s: Option<f64>,
    /// Least and greatest length that the evidence allows.
    pub bounds_s: (Option<f64>, Option<f64>),
}

impl Intervals {
    /// From the parsed file; what is missing or `null` was not measured.
    pub fn from_json(file: &Map<String, Value>) -> Self {
        let read = |name: &str| {
            let bounds = file.get("bounds").and_then(|all| all.get(name));
            let end = |i: usize| bounds.and_then(|pair| pair.get(i)).and_then(Value::as_f64);
            Interval {
                value_s: file.get(name).and_then(Value::as_f64),
                bounds_s: (end(0), end(1)),
            }
        };
        Self {
            drain_to_active_zero: read("drain_to_active_zero"),
            active_zero_to_lb_down: read("active_zero_to_lb_down"),
            lb_down_to_first_rst: read("lb_down_to_first_rst"),
        }
    }

    /// With their names on disk, in the order of events.
    pub fn named(&self) -> [(&'static str, Interval); 3] {
        [
            ("drain_to_active_zero", self.drain_to_active_zero),
            ("active_zero_to_lb_down", self.active_zero_to_lb_down),
            ("lb_down_to_first_rst", self.lb_down_to_first_rst),
        ]
    }
}
