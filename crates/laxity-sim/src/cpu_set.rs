//! A set of CPUs, taken out in ascending order.

use laxity_model::CpuId;

/// A bit a CPU.
#[derive(Clone, Debug)]
pub(crate) struct CpuSet {
    words: Vec<u64>,
}

impl CpuSet {
    /// An empty set with room for CPUs `0..cpus`.
    pub fn new(cpus: usize) -> Self {
        CpuSet { words: vec![0; cpus.div_ceil(64)] }
    }

    pub fn insert(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Removes the CPU of smallest number.
    pub fn pop_first(&mut self) -> Option<CpuId> {
        for (at, word) in self.words.iter_mut().enumerate() {
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                return Some(CpuId(at as u16 * 64 + bit as u16));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_come_out_in_ascending_order_once_each() {
        let mut set = CpuSet::new(200);
        for cpu in [130, 3, 64, 3, 199] {
            set.insert(CpuId(cpu));
        }
        let order: Vec<u16> = std::iter::from_fn(|| set.pop_first()).map(|cpu| cpu.0).collect();
        assert_eq!(order, [3, 64, 130, 199]);
    }
}
