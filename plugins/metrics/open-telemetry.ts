/** Reports metrics to an OpenTelemetry meter of the application. */
import type { Labels, MetricsSink } from './sink.js';

/** The part of `Meter` of @opentelemetry/api that is used. */
export interface OtelMeter {
  createCounter(name: string, options: OtelOptions): { add(by: number, labels: Labels): void };
  createHistogram(
    name: string,
    options: OtelOptions & { advice: { explicitBucketBoundaries: number[] } },
  ): { record(value: number, labels: Labels): void };
  createObservableGauge(
    name: string,
    options: OtelOptions,
  ): {
    addCallback(callback: OtelCallback): void;
    removeCallback(callback: OtelCallback): void;
  };
}

interface OtelOptions {
  description: string;
  unit?: string;
}

type OtelCallback = (result: { observe(value: number, labels: Labels): void }) => void;

/**
 * A sink for `metrics`: `toOpenTelemetry(api.metrics.getMeter('my-program'))`. Instruments have the
 * same names as in Prometheus.
 */
export function toOpenTelemetry(meter: OtelMeter): MetricsSink {
  return {
    counter: ({ name, help }) => {
      const counter = meter.createCounter(name, { description: help });
      return (by, labels) => counter.add(by, labels);
    },
    histogram: ({ name, help, unit, buckets }) => {
      const advice = { explicitBucketBoundaries: [...buckets] };
      const histogram = meter.createHistogram(name, { description: help, unit, advice });
      return (value, labels) => histogram.record(value, labels);
    },
    observe: ({ name, help }, read) => {
      const gauge = meter.createObservableGauge(name, { description: help });
      const callback: OtelCallback = (result) => {
        for (const { value, labels } of read()) result.observe(value, labels);
      };
      gauge.addCallback(callback);
      return () => gauge.removeCallback(callback);
    },
  };
}
