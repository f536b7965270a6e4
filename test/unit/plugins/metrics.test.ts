import assert from 'node:assert/strict';
import { MemPrivileges } from 'dapl';
import { createNoopMeter, type Meter } from '@opentelemetry/api';
import {
  METRICS,
  metrics,
  type MetricsSink,
  toOpenTelemetry,
  toPrometheus,
} from 'dapl/plugins/metrics';
import { faults } from 'dapl/plugins/faults';
import { type ConfiguredProvider, WcStatus, WrOpcode } from 'dapl/spi';
import * as promClient from 'prom-client';
import { connected } from '../../../plugins/testing/suite/peer.js';
import { PROVIDER_PAIRS, type ProviderPair, withAdapters } from '../../support/every-provider.js';

/** One message from active to passive, which stay open while `during` looks. */
async function oneMessage(pair: ProviderPair, during = async (): Promise<void> => undefined) {
  await withAdapters(pair, async (opened) => {
    const { active: a, passive: b } = await connected(opened);
    b.ep.postRecv(b.lmr.segment(0, 100), 1);
    a.ep.postSend(a.lmr.segment(0, 40), 2);
    await b.expect('dto 1 SUCCESS');
    await a.expect('dto 2 SUCCESS');
    await during();
  });
}

describe('Metrics of a provider', () => {
  for (const [name, pairOf] of Object.entries(PROVIDER_PAIRS)) {
    it(`go to prom-client: ${name}`, async () => {
      const register = new promClient.Registry();
      const sink = toPrometheus(promClient, { register });
      const pair = pairOf();
      const [active, passive] = [metrics(pair.active, sink), metrics(pair.passive, sink)];
      const device = pair.active.instance.deviceKey;
      let text = '';
      await oneMessage({ ...pair, active, passive }, async () => {
        text = await register.metrics();
      });
      const bytes = `dapl_completed_bytes_total{device="${device}",kind="send"} `;
      assert.ok(Number(text.split(bytes)[1]?.split('\n')[0]) >= 40, text);
      const one = (line: string): void =>
        assert.ok(text.includes(`${line} 1\n`), `${line}\n${text}`);
      one(`dapl_connection_events_total{device="${device}",event="established"}`);
      const { deviceKey } = pair.passive.instance;
      one(`dapl_connection_events_total{device="${deviceKey}",event="requested"}`);
      assert.match(text, /dapl_request_duration_seconds_count\{.*opcode="SEND"\} [1-9]/);
      assert.match(text, /dapl_completions_total\{.*kind="receive",.*status="SUCCESS"\} [1-9]/);
    });
  }

  for (const [where, stacked] of [
    [
      'beneath faults',
      (sink: MetricsSink, plain: ConfiguredProvider) => faults(metrics(plain, sink)),
    ],
    [
      'over faults',
      (sink: MetricsSink, plain: ConfiguredProvider) => {
        const faulty = faults(plain);
        return { ...faulty, provider: metrics(faulty.provider, sink) };
      },
    ],
  ] as const) {
    it(`name a request that fails as what it was: ${where}`, async () => {
      const register = new promClient.Registry();
      const pair = PROVIDER_PAIRS['mock']!();
      const { provider, sends } = stacked(toPrometheus(promClient, { register }), pair.active);
      const action = { type: 'fail', status: WcStatus.REM_ACCESS_ERR } as const;
      sends.add({ match: { opcode: WrOpcode.RDMA_WRITE }, action });
      let text = '';
      await withAdapters({ ...pair, active: provider }, async (opened) => {
        const { active: a, passive: b } = await connected(opened);
        a.ep.postRdmaWrite(a.lmr.segment(0, 40), 2, b.remote());
        await a.until('BROKEN');
        text = await register.metrics();
      });
      assert.match(text, /posted_total\{.*opcode="RDMA_WRITE"\} 1\n/);
      assert.match(text, /completions_total\{.*opcode="RDMA_WRITE",status="[A-Z_]+_ERR"\} 1\n/);
      assert.doesNotMatch(text, /completions_total\{.*opcode="SEND",status="[A-Z_]+_ERR"\}/);
    });
  }

  it("have the device's own counters while it is open", async () => {
    const register = new promClient.Registry();
    const sink = toPrometheus(promClient, { register });
    const pair = PROVIDER_PAIRS['mock']!();
    const counters = async (): Promise<string> =>
      register.getSingleMetricAsString(METRICS.deviceCounters.name);
    await oneMessage({ ...pair, active: metrics(pair.active, sink) }, async () => {
      assert.match(await counters(), /name="sentPackets"\} [1-9]/);
    });
    assert.doesNotMatch(await counters(), /sentPackets/);
  });

  it('count the READs and atomics that peers have had answered', async () => {
    const register = new promClient.Registry();
    const pair = PROVIDER_PAIRS['mock']!();
    const passive = metrics(pair.passive, toPrometheus(promClient, { register }));
    await withAdapters({ ...pair, passive }, async (opened) => {
      const privileges = MemPrivileges.ALL | MemPrivileges.REMOTE_ATOMIC;
      const { active: a, passive: b } = await connected(opened, { privileges });
      for (const cookie of [1, 2]) {
        a.ep.postRdmaRead([a.lmr.segment(0, 40)], cookie, b.remote());
        await a.expect(`dto ${cookie} SUCCESS`);
      }
      a.ep.postFetchAdd(a.lmr.segment(0, 8), 3, b.remote(), 1n);
      await a.expect('dto 3 SUCCESS');
      const text = await register.getSingleMetricAsString(METRICS.deviceCounters.name);
      assert.match(text, /name="readsAnswered"\} 2\n/);
      assert.match(text, /name="atomicsAnswered"\} 1\n/);
    });
  });

  it('go to a meter of OpenTelemetry', async () => {
    const seen = new Map<string, number>();
    const add = (instrument: string) => (by: number, labels: object | undefined) => {
      const key = `${instrument} ${JSON.stringify(labels)}`;
      seen.set(key, (seen.get(key) ?? 0) + by);
    };
    const noop = createNoopMeter();
    // A meter that remembers, of the type that the package has.
    const meter: Meter = Object.assign(Object.create(noop) as Meter, {
      createCounter: (instrument: string) => ({ add: add(instrument) }),
      createHistogram: (instrument: string) => ({ record: add(instrument) }),
    });
    const pair = PROVIDER_PAIRS["a stranger's"]!();
    await oneMessage({ ...pair, active: metrics(pair.active, toOpenTelemetry(meter)) });
    const device = pair.active.instance.deviceKey;
    assert.equal(
      seen.get(`dapl_completed_bytes_total ${JSON.stringify({ device, kind: 'send' })}`),
      40,
    );
    assert.ok([...seen.keys()].some((key) => key.startsWith('dapl_request_duration_seconds')));
  });

  it('refuse what is no sink', () => {
    const { active } = PROVIDER_PAIRS['mock']!();
    assert.throws(() => metrics(active, {} as MetricsSink), /metrics: the sink .*toPrometheus/);
  });
});
