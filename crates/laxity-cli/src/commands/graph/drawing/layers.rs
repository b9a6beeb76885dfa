//! Where nodes stand: in layers from left to right, so that few edges cross. Sources: Sugiyama, Tagawa & Toda 1981 (the
//! layers, and places in every layer that an edge passes); Eades & Wormald 1994 (the median of the neighbours).

use laxity_model::Graph;

use super::super::order::downstream;

/// Something that has a place in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A node.
    Node(usize),
    /// An edge that passes.
    Passing(usize),
}

/// The layers, from left to right, each from top to bottom.
#[derive(Clone, Debug)]
pub struct Layers {
    /// The places.
    pub places: Vec<Vec<Place>>,
}

/// Sweeps over all layers; more change little.
const SWEEPS: usize = 8;

impl Layers {
    /// Of `graph`, whose edges, back-edges aside, form no cycle.
    pub fn of(graph: &Graph) -> Self {
        // As far to the right as the longest path leads.
        let layer: Vec<usize> = downstream(graph).1.into_iter().map(|depth| depth - 1).collect();
        let mut places = vec![Vec::new(); layer.iter().max().map_or(0, |last| last + 1)];
        for (node, &layer) in layer.iter().enumerate() {
            places[layer].push(Place::Node(node));
        }
        for (number, edge) in graph.edges.iter().enumerate().filter(|(_, edge)| !edge.back_edge) {
            let passed = places.iter_mut().take(layer[edge.consumer]).skip(layer[edge.producer] + 1);
            passed.for_each(|places| places.push(Place::Passing(number)));
        }
        let mut layers = Layers { places };
        for sweep in 0..SWEEPS {
            layers.sweep(graph, sweep % 2 == 0);
        }
        layers
    }

    /// The layer of a place, and its number there.
    pub fn find(&self, wanted: Place) -> Option<(usize, usize)> {
        let numbers = |(layer, places): (usize, &Vec<Place>)| {
            places.iter().position(|&place| place == wanted).map(|number| (layer, number))
        };
        self.places.iter().enumerate().find_map(numbers)
    }

    /// The places of an edge in the layers that it passes.
    pub fn passed(&self, edge: usize) -> Vec<(usize, usize)> {
        let numbers = |(layer, places): (usize, &Vec<Place>)| {
            places.iter().position(|&place| place == Place::Passing(edge)).map(|number| (layer, number))
        };
        self.places.iter().enumerate().filter_map(numbers).collect()
    }

    /// Orders every layer by where its neighbours in the layer before are, from left to right or the other way.
    fn sweep(&mut self, graph: &Graph, rightwards: bool) {
        let count = self.places.len();
        for step in 1..count {
            let (layer, before) = if rightwards { (step, step - 1) } else { (count - 1 - step, count - step) };
            let old = self.places[layer].clone();
            let mut keyed: Vec<(u64, usize, Place)> = Vec::with_capacity(old.len());
            for (number, &place) in old.iter().enumerate() {
                let neighbours = self.neighbours(graph, place, before, rightwards);
                // Relative to the middles of both layers, so that lone chains run straight. In halves.
                let own = 2 * number as u64 + 1 + self.margin(layer);
                keyed.push((median(&neighbours).unwrap_or(own), number, place));
            }
            keyed.sort_unstable_by_key(|&(key, number, _)| (key, number));
            self.places[layer] = keyed.into_iter().map(|(.., place)| place).collect();
        }
    }

    /// Where those stand, in the layer `before`, that `place` is joined to, ascending.
    fn neighbours(&self, graph: &Graph, place: Place, before: usize, rightwards: bool) -> Vec<u64> {
        let end = |edge: usize| {
            let node = if rightwards { graph.edges[edge].producer } else { graph.edges[edge].consumer };
            [Place::Node(node), Place::Passing(edge)]
        };
        let edges: Vec<usize> = match place {
            Place::Passing(edge) => vec![edge],
            Place::Node(node) => (0..graph.edges.len())
                .filter(|&edge| !graph.edges[edge].back_edge)
                .filter(|&edge| {
                    node == if rightwards { graph.edges[edge].consumer } else { graph.edges[edge].producer }
                })
                .collect(),
        };
        let number = |edge: usize| self.places[before].iter().position(|place| end(edge).contains(place));
        let mut found: Vec<u64> =
            edges.into_iter().filter_map(number).map(|number| 2 * number as u64 + 1 + self.margin(before)).collect();
        found.sort_unstable();
        found
    }

    /// Above the first place of a layer, in halves of places, when all layers are centred.
    pub fn margin(&self, layer: usize) -> u64 {
        let most = self.places.iter().map(Vec::len).max().unwrap_or_default();
        (most - self.places[layer].len()) as u64
    }
}

fn median(sorted: &[u64]) -> Option<u64> {
    match sorted.len() {
        0 => None,
        count => Some((sorted[(count - 1) / 2] + sorted[count / 2]) / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::run::notation;
    use super::*;

    fn layers(edges: &str) -> Vec<Vec<Place>> {
        Layers::of(&notation::graph(edges).expect("a graph")).places
    }

    #[test]
    fn a_node_stands_behind_all_that_lead_to_it_and_long_edges_pass() {
        use Place::{Node, Passing};
        // A -> B -> C, A -> C; C -> A leads back.
        let found = layers("A:B,B:C,A:C,C:A@1");
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!((found[0][0], found[2][0]), (Node(0), Node(2)));
        assert!(found[1].contains(&Node(1)) && found[1].contains(&Passing(2)));
    }

    #[test]
    fn edges_do_not_cross_where_they_need_not() {
        // Written so that the order of the nodes crosses: A -> D, B -> C.
        let found = layers("A:D,B:C,A:E,B:F");
        let order = |layer: usize| -> Vec<usize> {
            found[layer].iter().map(|place| if let Place::Node(node) = place { *node } else { 99 }).collect()
        };
        let (first, second) = (order(0), order(1));
        let of = |source: usize| if source == first[0] { &second[..2] } else { &second[2..] };
        // Nodes by their appearance: A, D, B, C, E, F.
        assert!(of(0).contains(&1) && of(0).contains(&4), "{first:?} {second:?}");
        assert!(of(2).contains(&3) && of(2).contains(&5), "{first:?} {second:?}");
    }
}
