//! Generators as text: one line, written and read without loss.
//!
//! ```text
//! generator     = utilizations "/" periods { " " KEY "=" VALUE }
//! utilizations  = NAME | "uniform(" MIN "," MAX ")" | "bimodal(" NINTHS ")" | "exponential(" MEAN ")" | METHOD
//! periods       = NAME | ("uniform" | "log-uniform") "(" MIN "," MAX "," STEP ")"
//! keys          = cap (distributions) | n total min max (methods) | gpu part transfer interrupts overlap
//! ```

use std::fmt;
use std::str::FromStr;

use laxity_model::Nanos;

use crate::{
    Decimal, FixedSum, FixedSumMethod, GeneratorSpec, GpuUse, ParseSpecError, PerTask, PeriodDistribution, PeriodShape,
    UtilizationDistribution, UtilizationRule,
};

impl fmt::Display for GeneratorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let periods = self.periods;
        match &self.utilizations {
            UtilizationRule::UntilCap { distribution, cap } => write!(f, "{distribution}/{periods} cap={cap}")?,
            UtilizationRule::FixedSum(fixed) => {
                write!(f, "{}/{periods} n={} total={}", fixed.method, fixed.tasks, fixed.total)?;
                if fixed.min != PerTask::All(Decimal::ZERO) {
                    write!(f, " min={}", fixed.min)?;
                }
                if fixed.max != PerTask::All(Decimal::ONE) {
                    write!(f, " max={}", fixed.max)?;
                }
            }
        }
        match &self.gpu {
            Some(gpu) => write!(f, " {gpu}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for UtilizationDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = Self::NAMED.iter().find(|(_, named)| named == self) {
            return f.write_str(name);
        }
        match self {
            Self::Uniform { min, max } => write!(f, "uniform({min},{max})"),
            Self::Bimodal { light_ninths } => write!(f, "bimodal({light_ninths})"),
            Self::Exponential { mean } => write!(f, "exponential({mean})"),
        }
    }
}

impl fmt::Display for PeriodDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = Self::NAMED.iter().find(|(_, named)| named == self) {
            return f.write_str(name);
        }
        let shape = match self.shape {
            PeriodShape::Uniform => "uniform",
            PeriodShape::LogUniform => "log-uniform",
        };
        write!(f, "{shape}({},{},{})", span(self.min), span(self.max), span(self.granularity))
    }
}

impl fmt::Display for PerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerTask::All(number) => number.fmt(f),
            PerTask::Each(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(Decimal::to_string).collect();
                // A list of one task would read as a number for all; a trailing comma keeps it a list.
                write!(f, "{}{}", numbers.join(","), if numbers.len() == 1 { "," } else { "" })
            }
        }
    }
}

impl fmt::Display for GpuUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GpuUse { share_min, share_max, part, transfer, overlap, interrupts } = self;
        write!(f, "gpu={share_min}..{share_max} part={part} transfer={transfer} interrupts={interrupts}")?;
        // Left out where there is none: older lines replay and are written as they were.
        if *overlap != Decimal::ZERO {
            write!(f, " overlap={overlap}")?;
        }
        Ok(())
    }
}

/// A span without the space that would end the word: `2.5ms`.
fn span(nanos: Nanos) -> String {
    nanos.to_string().replace(' ', "")
}

/// Every key of a line.
const KEYS: &str = "cap, n, total, min, max, gpu, part, transfer, interrupts and overlap";

impl FromStr for GeneratorSpec {
    type Err = ParseSpecError;

    fn from_str(text: &str) -> Result<Self, ParseSpecError> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let no_slash = || ParseSpecError::NoSlash { text: first.to_owned() };
        let (utilizations, periods) = first.split_once('/').ok_or_else(no_slash)?;
        let periods = periods.parse()?;
        let mut parameters = Parameters::read(words, KEYS)?;
        let utilizations = match FixedSumMethod::ALL.into_iter().find(|method| method.name() == utilizations) {
            Some(method) => UtilizationRule::FixedSum(fixed_sum(method, &mut parameters)?),
            None => {
                let distribution = utilizations.parse()?;
                UtilizationRule::UntilCap { distribution, cap: parameters.required("cap")? }
            }
        };
        let spec = GeneratorSpec { utilizations, periods, gpu: gpu_use(&mut parameters)? };
        parameters.finish()?;
        spec.validate()?;
        Ok(spec)
    }
}

fn fixed_sum(method: FixedSumMethod, parameters: &mut Parameters<'_>) -> Result<FixedSum, ParseSpecError> {
    parameters.known = "n, total, min, max, gpu, part, transfer, interrupts and overlap";
    let text = parameters.take("n").ok_or(ParseSpecError::Missing { parameter: "n" })?;
    let tasks = text.parse().map_err(|_| ParseSpecError::Number { text: text.to_owned() })?;
    let defaults = FixedSum::new(method, tasks, parameters.required("total")?);
    Ok(FixedSum {
        min: parameters.optional("min")?.unwrap_or(defaults.min),
        max: parameters.optional("max")?.unwrap_or(defaults.max),
        ..defaults
    })
}

/// The other four parameters stand only beside `gpu`; absent ones are those of [`GpuUse::RUNTIME`].
fn gpu_use(parameters: &mut Parameters<'_>) -> Result<Option<GpuUse>, ParseSpecError> {
    let Some(band) = parameters.take("gpu") else { return Ok(None) };
    let (share_min, share_max) = band.split_once("..").unwrap_or((band, band));
    let defaults = GpuUse::RUNTIME;
    let interrupts = match parameters.take("interrupts") {
        Some(text) => text.parse().map_err(|_| ParseSpecError::Number { text: text.to_owned() })?,
        None => defaults.interrupts,
    };
    Ok(Some(GpuUse {
        share_min: share_min.parse()?,
        share_max: share_max.parse()?,
        part: parameters.optional("part")?.unwrap_or(defaults.part),
        transfer: parameters.optional("transfer")?.unwrap_or(defaults.transfer),
        overlap: parameters.optional("overlap")?.unwrap_or(defaults.overlap),
        interrupts,
    }))
}

/// The `KEY=VALUE` words of a line, each taken once.
struct Parameters<'a> {
    left: Vec<(&'a str, &'a str)>,
    known: &'static str,
}

impl<'a> Parameters<'a> {
    fn read(words: impl Iterator<Item = &'a str>, known: &'static str) -> Result<Self, ParseSpecError> {
        let pair = |word: &'a str| {
            word.split_once('=').ok_or_else(|| ParseSpecError::Parameter { text: word.to_owned(), known })
        };
        Ok(Parameters { left: words.map(pair).collect::<Result<_, _>>()?, known })
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let position = self.left.iter().position(|&(name, _)| name == key)?;
        Some(self.left.remove(position).1)
    }

    fn optional<T: FromStr<Err = ParseSpecError>>(&mut self, key: &str) -> Result<Option<T>, ParseSpecError> {
        self.take(key).map(str::parse).transpose()
    }

    fn required<T: FromStr<Err = ParseSpecError>>(&mut self, key: &'static str) -> Result<T, ParseSpecError> {
        self.optional(key)?.ok_or(ParseSpecError::Missing { parameter: key })
    }

    /// A word that is left over is unknown, or stands twice.
    fn finish(self) -> Result<(), ParseSpecError> {
        match self.left.first() {
            Some((key, value)) => Err(ParseSpecError::Parameter { text: format!("{key}={value}"), known: self.known }),
            None => Ok(()),
        }
    }
}

impl FromStr for UtilizationDistribution {
    type Err = ParseSpecError;

    fn from_str(text: &str) -> Result<Self, ParseSpecError> {
        if let Some((_, named)) = Self::NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(named);
        }
        let unknown = || ParseSpecError::Utilizations { text: text.to_owned() };
        let (shape, arguments) = call(text).ok_or_else(unknown)?;
        match (shape, arguments.as_slice()) {
            ("uniform", [min, max]) => Ok(Self::Uniform { min: min.parse()?, max: max.parse()? }),
            ("bimodal", [ninths]) => Ok(Self::Bimodal { light_ninths: ninths.parse().map_err(|_| unknown())? }),
            ("exponential", [mean]) => Ok(Self::Exponential { mean: mean.parse()? }),
            _ => Err(unknown()),
        }
    }
}

impl FromStr for PeriodDistribution {
    type Err = ParseSpecError;

    fn from_str(text: &str) -> Result<Self, ParseSpecError> {
        if let Some((_, named)) = Self::NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(named);
        }
        let unknown = || ParseSpecError::Periods { text: text.to_owned() };
        let (shape, arguments) = call(text).ok_or_else(unknown)?;
        let shape = match shape {
            "uniform" => PeriodShape::Uniform,
            "log-uniform" => PeriodShape::LogUniform,
            _ => return Err(unknown()),
        };
        let &[min, max, step] = arguments.as_slice() else { return Err(unknown()) };
        Ok(PeriodDistribution { shape, min: parse_span(min)?, max: parse_span(max)?, granularity: parse_span(step)? })
    }
}

impl FromStr for PerTask {
    type Err = ParseSpecError;

    fn from_str(text: &str) -> Result<Self, ParseSpecError> {
        if !text.contains(',') {
            return Ok(PerTask::All(text.parse()?));
        }
        let list = text.strip_suffix(',').unwrap_or(text);
        Ok(PerTask::Each(list.split(',').map(str::parse).collect::<Result<_, _>>()?))
    }
}

/// `name(a,b,c)` as its name and arguments.
fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, arguments) = text.strip_suffix(')')?.split_once('(')?;
    Some((name, arguments.split(',').collect()))
}

/// `15ms`, `2.5us`: a whole number of nanoseconds.
fn parse_span(text: &str) -> Result<Nanos, ParseSpecError> {
    let error = || ParseSpecError::Span { text: text.to_owned() };
    let (number, unit) = text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic()).ok_or_else(error)?);
    let nanos_per_unit: u128 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(error()),
    };
    let scaled = u128::from(number.parse::<Decimal>().map_err(|_| error())?.billionths()) * nanos_per_unit;
    let billion = u128::from(Decimal::ONE.billionths());
    if !scaled.is_multiple_of(billion) {
        return Err(error());
    }
    u64::try_from(scaled / billion).map(Nanos).map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_written_without_loss() {
        for text in [
            "uni-light/moderate cap=2",
            "bimo-heavy/long cap=31.5",
            "exp-heavy/multimedia cap=8 gpu=0.2..0.3 part=0.8 transfer=0.2 interrupts=3",
            "uniform(0.01,0.1)/multimedia cap=6 gpu=0.5..0.6 part=0.75 transfer=0.2 interrupts=6",
            "exp-heavy/multimedia cap=8 gpu=0.2..0.3 part=0.8 transfer=0.2 interrupts=3 overlap=0.5",
            "bimodal(5)/short cap=1",
            "exponential(0.3)/uniform(1ms,7.5ms,500us) cap=1.000000001",
            "uunifast-discard/long n=10 total=3",
            "randfixedsum/log-uniform(1ms,1s,1ms) n=10 total=7.5 min=0.1 max=0.9",
            "dirichlet-rescale/short n=3 total=1 min=0.1 max=0.2,0.5,0.9",
            "pair-exchange/short n=1 total=0.5 max=0.7,",
        ] {
            let spec: GeneratorSpec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(spec.to_string(), text);
        }
        let shuffled = "randfixedsum/short  total=2 gpu=0.5 n=4".parse::<GeneratorSpec>().expect("any order will do");
        assert_eq!(
            shuffled.to_string(),
            "randfixedsum/short n=4 total=2 gpu=0.5..0.5 part=0.8 transfer=0.2 interrupts=3"
        );
    }

    #[test]
    fn the_eighteen_scenarios_of_paper_002_have_names() {
        let names: Vec<String> = GeneratorSpec::edf_scenarios(Decimal::ONE).map(|spec| spec.to_string()).collect();
        assert_eq!(names.len(), 18);
        assert_eq!(names[0], "uni-light/short cap=1");
        assert_eq!(names[17], "bimo-heavy/long cap=1");
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), 18);
    }

    #[test]
    fn what_is_wrong_is_quoted_with_the_way_out() {
        for (text, parts) in [
            ("", ["``", "cap=2"]),
            ("uni-light", ["`uni-light`", "slash"]),
            ("uni-lite/short cap=1", ["`uni-lite`", "light, medium or heavy"]),
            ("uni-light/shorter cap=1", ["`shorter`", "short, moderate"]),
            ("uni-light/uniform(1ms,2ms) cap=1", ["`uniform(1ms,2ms)`", "MIN,MAX,STEP"]),
            ("uni-light/uniform(1ms,2m,1ms) cap=1", ["`2m`", "2.5ms"]),
            ("uni-light/uniform(1ms,2.5ns,1ms) cap=1", ["`2.5ns`", "ns, us, ms or s"]),
            ("uni-light/short", ["cap is missing", "cap=VALUE"]),
            ("uni-light/short cap=x", ["`x`", "digits"]),
            ("uni-light/short cap=1 cap=2", ["`cap=2`", "once"]),
            ("uni-light/short cap=1 part=0.5", ["`part=0.5`", "gpu"]),
            ("uni-light/short cap=1 loud", ["`loud`", "KEY=VALUE"]),
            ("randfixedsum/short n=4 total=5", ["total utilization 5", "4 tasks"]),
            ("randfixedsum/short n=-4 total=5", ["`-4`", "number"]),
            ("uunifast-discard/short n=4 total=2 cap=3", ["`cap=3`", "n, total"]),
            ("uni-light/short cap=0.01", ["cap 0.01", "0.1"]),
            ("uni-light/short cap=1 gpu=0.4..0.2", ["0.4", "0.2"]),
            ("uni-light/short cap=1 gpu=0.4 overlap=1.5", ["CPU time beside GPU work", "1.5"]),
            ("uni-light/short cap=1 overlap=0.5", ["`overlap=0.5`", "gpu"]),
            ("uni-light/short cap=1 gpu=0.4 interrupts=9999", ["9999", "1000"]),
        ] {
            let error = text.parse::<GeneratorSpec>().expect_err(text).to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
