/** Contract of a metrics sink: what a monitoring library must offer, in Prometheus terms. */

export type Labels = Readonly<Record<string, string>>;

export interface MetricDescription {
  /** `dapl_completions_total`: by Prometheus' conventions, in base units. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export interface HistogramDescription extends MetricDescription {
  /** Upper bounds of the buckets, ascending. */
  readonly buckets: readonly number[];
  /** Unit by UCUM: `s`. */
  readonly unit: string;
}

/** One value of a set that is read at collection. */
export interface Reading {
  readonly value: number;
  readonly labels: Labels;
}

/**
 * Creates metrics. A second request for a metric returns the same one: devices share it, and labels
 * tell them apart.
 */
export interface MetricsSink {
  counter(description: MetricDescription): (by: number, labels: Labels) => void;
  histogram(description: HistogramDescription): (value: number, labels: Labels) => void;
  /** Values of a device, read at each collection. @returns a function that stops the reading */
  observe(description: MetricDescription, read: () => readonly Reading[]): () => void;
}
