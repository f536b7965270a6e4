/** Table of all metrics, as in docs/decorators.md. */
import type { HistogramDescription, MetricDescription } from './sink.js';

/** Buckets from 1 us to 1 s, three per decade. */
const BUCKETS: readonly number[] = [
  ...[1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4],
  ...[1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1],
];

const seconds: HistogramDescription = {
  name: 'dapl_request_duration_seconds',
  help: 'From the doorbell of a send request to its successful completion being read',
  labels: ['device', 'opcode'],
  unit: 's',
  buckets: BUCKETS,
};

export const METRICS = {
  requests: {
    name: 'dapl_requests_posted_total',
    help: 'Work requests handed to the device',
    labels: ['device', 'kind', 'opcode'],
  },
  completions: {
    name: 'dapl_completions_total',
    help: 'Completions read, by status',
    labels: ['device', 'kind', 'opcode', 'status'],
  },
  bytes: {
    name: 'dapl_completed_bytes_total',
    help: 'Payload of successful completions',
    labels: ['device', 'kind'],
  },
  seconds,
  connections: {
    name: 'dapl_connection_events_total',
    help: 'Events of connections: requested, established, rejected, disconnected and so on',
    labels: ['device', 'event'],
  },
  events: {
    name: 'dapl_queue_pair_events_total',
    help: 'Asynchronous events of queue pairs',
    labels: ['device', 'event'],
  },
  deviceCounters: {
    name: 'dapl_device_counter',
    help: 'What the device and its port count, by names of the provider',
    labels: ['device', 'name'],
  },
} as const satisfies Readonly<Record<string, MetricDescription>>;
