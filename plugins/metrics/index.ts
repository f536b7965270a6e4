/**
 * Metrics of any provider for a monitoring system (`dapl/plugins/metrics`): requests, completions
 * by status, bytes, durations of requests, connections, and the device's own counters. They go to
 * prom-client or to OpenTelemetry. The application passes its own copy of either; neither is a
 * dependency.
 */
import { checkValue, kindOf } from '../../core/spi/checks/index.js';
import { refusing } from '../../core/spi/errors/consumer-errors.js';
import {
  AsyncEventType,
  type CmEvent,
  type CmModule,
  type ConfiguredProvider,
  nameOf,
  PROVIDER,
  WcOpcode,
  WcStatus,
  WrOpcode,
} from '../../core/spi/index.js';
import {
  decorate,
  observedDevice,
  type Observer,
  over,
  type Over,
} from '../../core/spi/decorators/index.js';
import { METRICS } from './table.js';
import type { MetricsSink } from './sink.js';

export { type OtelMeter, toOpenTelemetry } from './open-telemetry.js';
export { type PromClient, type PrometheusOptions, toPrometheus } from './prometheus.js';
export type {
  HistogramDescription,
  Labels,
  MetricDescription,
  MetricsSink,
  Reading,
} from './sink.js';
export { METRICS } from './table.js';

const SINK = kindOf<MetricsSink>(
  'a sink, as toPrometheus(promClient) or toOpenTelemetry(meter) is',
  (value) => {
    const { counter, histogram, observe } = (value ?? {}) as Partial<MetricsSink>;
    return [counter, histogram, observe].every((member) => typeof member === 'function');
  },
);

const US_PER_SECOND = 1e6;

/**
 * Wraps a provider so that it reports its metrics to a sink; docs/decorators.md lists them.
 * @throws DatError DAT_INVALID_PARAMETER if the sink is invalid
 */
export function metrics(provider: ConfiguredProvider, sink: MetricsSink): ConfiguredProvider {
  const refuse = refusing('metrics');
  checkValue('the provider', provider, PROVIDER, refuse);
  checkValue('the sink', sink, SINK, refuse);
  const device = provider.instance.deviceKey;
  const meters = metersOf(sink);
  return decorate(
    provider,
    {
      device: (inner, { clock }) => {
        const read = (): { value: number; labels: Record<string, string> }[] =>
          Object.entries(inner.readCounters?.() ?? {}).map(([name, value]) => ({
            value,
            labels: { device, name },
          }));
        const stop = sink.observe(METRICS.deviceCounters, read);
        const members = observedDevice(inner, clock, observerOf(meters, device));
        return {
          ...members,
          close: () => {
            stop();
            return inner.close();
          },
        };
      },
      cm: (inner) => countedCm(inner, (event) => meters.connections(1, { device, event })),
    },
    { name: 'metrics' },
  );
}

type Meters = ReturnType<typeof metersOf>;

function metersOf(sink: MetricsSink) {
  return {
    requests: sink.counter(METRICS.requests),
    completions: sink.counter(METRICS.completions),
    bytes: sink.counter(METRICS.bytes),
    seconds: sink.histogram(METRICS.seconds),
    connections: sink.counter(METRICS.connections),
    events: sink.counter(METRICS.events),
  };
}

function observerOf(meters: Meters, device: string): Observer {
  return {
    posted: ({ kind, opcode }) => {
      const what = opcode === undefined ? 'RECEIVE' : nameOf(WrOpcode, opcode);
      meters.requests(1, { device, kind, opcode: what });
    },
    completed: ({ kind, opcode, status, lengthBytes, tookUs }) => {
      const what = nameOf(WcOpcode, opcode);
      meters.completions(1, { device, kind, opcode: what, status: nameOf(WcStatus, status) });
      if (lengthBytes > 0) meters.bytes(lengthBytes, { device, kind });
      if (kind === 'send' && tookUs !== undefined && status === WcStatus.SUCCESS) {
        meters.seconds(tookUs / US_PER_SECOND, { device, opcode: what });
      }
    },
    event: (_qpn, event) => meters.events(1, { device, event: nameOf(AsyncEventType, event) }),
  };
}

function countedCm(cm: CmModule, count: (event: string) => void): Over<CmModule> {
  const counted =
    (onEvent: (event: CmEvent) => void) =>
    (event: CmEvent): void => {
      count(event.type);
      onEvent(event);
    };
  return {
    connect: (options) => cm.connect({ ...options, onEvent: counted(options.onEvent) }),
    listen: (options) => {
      const { onRequest } = options;
      if (onRequest === undefined) return cm.listen(options);
      return cm.listen({
        ...options,
        onRequest: (request) => {
          count('requested');
          onRequest(
            over(request, {
              accept: (accepting) =>
                request.accept({ ...accepting, onEvent: counted(accepting.onEvent) }),
            }),
          );
        },
      });
    },
  };
}
