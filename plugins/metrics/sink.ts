/** Contract of a metrics sink: what a monitoring library must offer, in Prometheus terms. */

export type Labels = Readonly<Record<string, string>>;

export interface MetricDescription {
  /** `dapl_completions_total`: Prometheus' conventions, base units. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export interface HistogramDescription extends MetricDescription {
  /** Upper bounds of the buckets, ascending. */
  readonly buckets: readonly number[];
  /** UCUM: `s`. */
  readonly unit: string;
}

/** One number of a set that is read when it is asked for. */
export interface Reading {
  readonly value: number;
  readonly labels: Labels;
}

/**
 * A metric that is asked for twice is the same one: several devices count in it, told apart by
 * their labels.
 */
export interface MetricsSink {
  counter(description: MetricDescription): (by: number, labels: Labels) => void;
  histogram(description: HistogramDescription): (value: number, labels: Labels) => void;
  /**
   * Numbers of a device, read at each collection.
   * @returns what ends the reading
   */
  observe(description: MetricDescription, read: () => readonly Reading[]): () => void;
}
