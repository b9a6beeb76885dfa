//! How much slower memory-bound work is beside given traffic: the curve of the model's `contention`.

use laxity_model::write_rate;

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Traffic of all other CPUs, bytes a second.
    pub traffic: u64,
    /// The time that work takes, relative to alone: at least 1.
    pub slowdown: f64,
}

/// Points in the order of traffic, from no traffic on, whose slowdowns never fall. Linear between them, and the last
/// segment continues.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Vec<CurvePoint>,
}

impl Curve {
    /// Through what was measured: where a point with more traffic shows less slowdown, which is noise, both get their mean
    /// (the pool-adjacent-violators algorithm).
    pub fn through(measured: impl IntoIterator<Item = CurvePoint>) -> Curve {
        let mut measured: Vec<CurvePoint> = measured.into_iter().filter(|point| point.traffic > 0).collect();
        measured.sort_by_key(|point| point.traffic);
        // Means of neighbours, each with the number of points that it stands for.
        let mut pools: Vec<(f64, usize)> = Vec::new();
        for point in &measured {
            pools.push((point.slowdown.max(1.0), 1));
            while let [.., (before, of_before), (last, of_last)] = pools[..]
                && last < before
            {
                let count = of_before + of_last;
                let mean = (before * of_before as f64 + last * of_last as f64) / count as f64;
                pools.truncate(pools.len() - 2);
                pools.push((mean, count));
            }
        }
        let means = pools.iter().flat_map(|&(mean, count)| std::iter::repeat_n(mean, count));
        let points = measured.iter().zip(means).map(|(point, slowdown)| CurvePoint { slowdown, ..*point });
        let first = CurvePoint { traffic: 0, slowdown: 1.0 };
        let mut curve = Curve { points: [first].into_iter().chain(points).collect() };
        curve.points.dedup_by_key(|point| point.traffic);
        curve
    }

    /// Its points, that without traffic first.
    pub fn points(&self) -> &[CurvePoint] {
        &self.points
    }

    /// The time that work takes beside that traffic, relative to alone.
    pub fn slowdown(&self, traffic: f64) -> f64 {
        let Some(upper) = self.points.iter().skip(1).position(|point| point.traffic as f64 >= traffic) else {
            return match self.points[..] {
                [.., from, to] => between(from, to, traffic).max(1.0),
                _ => 1.0,
            };
        };
        between(self.points[upper], self.points[upper + 1], traffic)
    }

    /// The part of its progress that work loses beside that traffic: `1 - 1/slowdown`.
    pub fn loss(&self, traffic: f64) -> f64 {
        1.0 - 1.0 / self.slowdown(traffic)
    }

    /// As workload files have it.
    pub fn to_toml(&self) -> String {
        let point = |point: &CurvePoint| format!("[\"{}\", {:.3}]", write_rate(rounded(point.traffic)), point.slowdown);
        let points: Vec<String> = self.points.iter().map(point).collect();
        format!("[platform.memory]\ncontention = [{}]\n", points.join(", "))
    }
}

/// To whole MB/s, which is more than can be measured.
fn rounded(traffic: u64) -> u64 {
    traffic.saturating_add(500_000) / 1_000_000 * 1_000_000
}

fn between(from: CurvePoint, to: CurvePoint, traffic: f64) -> f64 {
    let width = (to.traffic - from.traffic) as f64;
    from.slowdown + (to.slowdown - from.slowdown) * (traffic - from.traffic as f64) / width
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u64, f64)]) -> Curve {
        Curve::through(points.iter().map(|&(traffic, slowdown)| CurvePoint { traffic, slowdown }))
    }

    #[test]
    fn a_curve_is_linear_between_its_points_and_goes_on() {
        let curve = curve(&[(3_000, 2.0), (1_000, 1.2)]);
        for (traffic, expected) in [(0.0, 1.0), (500.0, 1.1), (1_000.0, 1.2), (2_000.0, 1.6), (4_000.0, 2.4)] {
            let found = curve.slowdown(traffic);
            assert!((found - expected).abs() < 1e-12, "{found} at {traffic}");
        }
        assert!((curve.loss(3_000.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn noise_is_pooled_so_that_the_curve_never_falls() {
        let curve = curve(&[(1, 0.9), (2, 1.6), (3, 1.4), (4, 1.3), (5, 2.0)]);
        let slowdowns: Vec<f64> = curve.points().iter().map(|point| point.slowdown).collect();
        assert_eq!(slowdowns[..2], [1.0, 1.0], "no work is faster beside others");
        assert!((slowdowns[2] - 4.3 / 3.0).abs() < 1e-12 && slowdowns[2] == slowdowns[4], "{slowdowns:?}");
        assert_eq!(slowdowns[5], 2.0);
    }

    #[test]
    fn without_a_measurement_nothing_slows_down() {
        assert_eq!(curve(&[]).slowdown(1e9), 1.0);
        assert_eq!(curve(&[]).to_toml(), "[platform.memory]\ncontention = [[\"0 B/s\", 1.000]]\n");
    }

    #[test]
    fn a_curve_is_written_as_workloads_have_it() {
        let text = curve(&[(900_400_000, 3.3)]).to_toml();
        assert_eq!(text, "[platform.memory]\ncontention = [[\"0 B/s\", 1.000], [\"900 MB/s\", 3.300]]\n");
    }
}
