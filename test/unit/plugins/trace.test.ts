import assert from 'node:assert/strict';
import { trace, type TraceEntry, traceLine } from 'dapl/plugins/trace';
import { connected } from '../../../plugins/testing/suite/peer.js';
import { PROVIDER_PAIRS, withAdapters } from '../../support/every-provider.js';

describe('A traced provider', () => {
  for (const [name, pairOf] of Object.entries(PROVIDER_PAIRS)) {
    it(`tells of connections, states, requests and completions, in order: ${name}`, async () => {
      const entries: TraceEntry[] = [];
      const pair = pairOf();
      const active = trace(pair.active, { write: (entry) => void entries.push(entry) });
      await withAdapters({ ...pair, active }, async (opened) => {
        const { active: a, passive: b } = await connected(opened);
        b.ep.postRecv(b.lmr.segment(0, 100), 1);
        a.ep.postSend(a.lmr.segment(0, 40), 2);
        await b.expect('dto 1 SUCCESS');
        await a.expect('dto 2 SUCCESS');
        a.ep.disconnect('abrupt');
        await a.until('DISCONNECTED');
      });
      const managed = entries.filter(({ text }) => /^qp 1 receive \d+: \d+ bytes/.test(text));
      assert.deepEqual(managed, [], 'receives of QP1 as they are posted');
      const texts = entries.map(({ text }) => text).filter((text) => !text.startsWith('qp 1 '));
      const wanted = [
        /^qp \d+ to INIT$/,
        /^qp \d+ connect to [\d.]+, service 0x/,
        /^qp \d+ established$/,
        /^qp \d+ send 0: SEND, 40 bytes/,
        /^qp \d+ send 0: SUCCESS, 40 bytes after [\d.]+ us$/,
        /^qp \d+ disconnect$/,
        /^qp \d+ to ERR$/,
      ];
      let from = 0;
      for (const pattern of wanted) {
        const at = texts.findIndex((text, i) => i >= from && pattern.test(text));
        assert.notEqual(at, -1, `${pattern} in\n${texts.slice(from).join('\n')}`);
        from = at + 1;
      }
      const times = entries.map(({ timeUs }) => timeUs);
      assert.deepEqual(
        times,
        [...times].sort((a, b) => a - b),
      );
    });
  }

  it('is a line of time, device and text', () => {
    const entry = { timeUs: 12.34, device: 'mock 10.0.0.1', part: 'request', text: 'x' } as const;
    assert.equal(traceLine(entry), '        12.3 us  mock 10.0.0.1  x');
  });

  it('leaves requests out when it is told to, and refuses options that are none', async () => {
    const parts = new Set<string>();
    const pair = PROVIDER_PAIRS['mock']!();
    const write = ({ part }: TraceEntry): void => void parts.add(part);
    await withAdapters(
      { ...pair, active: trace(pair.active, { write, requests: false }) },
      async (opened) => {
        await connected(opened);
      },
    );
    assert.deepEqual([...parts].sort(), ['connection', 'queue-pair']);
    assert.throws(() => trace(pair.active, { writes: write } as never), /trace: .*"writes".*write/);
  });
});
