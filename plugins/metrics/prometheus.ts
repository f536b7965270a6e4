/** Reports metrics to prom-client. The application passes its module; nothing is imported here. */
import type {
  HistogramDescription,
  Labels,
  MetricDescription,
  MetricsSink,
  Reading,
} from './sink.js';

/** The part of prom-client that is used: the module itself fits. */
export interface PromClient<Register> {
  readonly Counter: new (configuration: PromConfiguration<Register>) => {
    inc(labels: Labels, value: number): void;
  };
  readonly Histogram: new (configuration: PromConfiguration<Register> & { buckets: number[] }) => {
    observe(labels: Labels, value: number): void;
  };
  readonly Gauge: new (configuration: PromConfiguration<Register> & { collect(): void }) => {
    set(labels: Labels, value: number): void;
    reset(): void;
  };
  readonly register: Register;
}

interface PromConfiguration<Register> {
  name: string;
  help: string;
  labelNames: string[];
  registers: Register[];
}

export interface PrometheusOptions<Register> {
  /** Default: prom-client's register. */
  readonly register?: Register;
}

/**
 * A sink for `metrics`: `toPrometheus(promClient)`. Use one sink for all providers of a register,
 * because prom-client accepts a name only once.
 * @param client the module prom-client, 14 or 15
 */
export function toPrometheus<Register>(
  client: PromClient<Register>,
  { register = client.register }: PrometheusOptions<Register> = {},
): MetricsSink {
  const made = new Map<string, unknown>();
  const once = <T>(name: string, make: () => T): T => {
    const known = made.get(name) ?? make();
    made.set(name, known);
    return known as T;
  };
  const configuration = (given: MetricDescription): PromConfiguration<Register> => ({
    name: given.name,
    help: given.help,
    labelNames: [...given.labels],
    registers: [register],
  });
  const readers = new Map<string, Set<() => readonly Reading[]>>();
  return {
    counter: (given) => {
      const counter = once(given.name, () => new client.Counter(configuration(given)));
      return (by, labels) => counter.inc(labels, by);
    },
    histogram: (given: HistogramDescription) => {
      const histogram = once(
        given.name,
        () => new client.Histogram({ ...configuration(given), buckets: [...given.buckets] }),
      );
      return (value, labels) => histogram.observe(labels, value);
    },
    observe: (given, read) => {
      const { name } = given;
      const set = readers.get(name) ?? new Set();
      readers.set(name, set.add(read));
      const gauge = once(
        name,
        () =>
          new client.Gauge({
            ...configuration(given),
            collect: () => {
              gauge.reset();
              const readings = [...set].flatMap((each) => each());
              for (const { value, labels } of readings) gauge.set(labels, value);
            },
          }),
      );
      return () => void set.delete(read);
    },
  };
}
