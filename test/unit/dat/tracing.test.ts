// The debug log of a connection, as the review of August 2005 wants it: what is called, with names
// and values, and what becomes of it.

import assert from 'node:assert/strict';
import { EventBatch, EvdFlags } from '../../../core/index.js';
import { WcStatus } from '../../../core/spi/index.js';
import { openFake } from '../../support/fake-provider.js';

const NOTHING = new Uint8Array(0);

/** A logger that keeps what it is given, and an adapter that has it. */
async function openLogged(enabled: boolean) {
  const lines: string[] = [];
  const infos: unknown[][] = [];
  const nothing = (): void => undefined;
  const debug = (message: string): void => void lines.push(message);
  const info = (...args: unknown[]): void => void infos.push(args);
  const logger = {
    ...{ debug, info, warn: nothing, error: nothing, isDebugEnabled: () => enabled },
    child: () => logger,
  };
  return { ...(await openFake({ logger })), lines, infos };
}

async function traced(enabled: boolean): Promise<string[]> {
  const { ia, cm, world, lines } = await openLogged(enabled);
  const pz = ia.createPz();
  const ep = ia.createEndpoint({ pz });
  ep.connect({ address: '192.0.2.2', connQual: 7 });
  cm.connection.emit({ type: 'established', privateData: NOTHING });
  world.pump();
  assert.equal(ep.state, 'CONNECTED');
  return lines;
}

const GONE = 'the peer does not answer any more, and the retries ran out';

/** A request succeeds, the next one fails. */
async function broken(enabled: boolean) {
  const fake = await openLogged(enabled);
  const { ia, cm, world, device } = fake;
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 8 });
  const ep = ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd });
  const lmr = ia.allocate(4096, { pz });
  ep.connect({ address: '192.0.2.2', connQual: 7 });
  cm.connection.emit({ type: 'established', privateData: NOTHING });
  world.pump();
  evd.dequeue();
  ep.postSend(lmr.segment(), 5);
  device.qp.completeSend();
  evd.dequeueInto(new EventBatch(4), 4);
  ep.postSend(lmr.segment(), 6);
  device.qp.completeSend(WcStatus.RETRY_EXC_ERR);
  while (evd.dequeue() !== undefined);
  return { ...fake, ep, evd };
}

describe('tracing', () => {
  it('shows whom an endpoint connects to, by parameter names, and its states by name', async () => {
    const lines = await traced(true);
    const connect = lines.find((line) => line.startsWith('ep.connect('));
    assert.match(connect ?? '', /^ep\.connect\(ep=\d+, .*192\.0\.2\.2.*connQual/);
    assert.ok(
      lines.some((line) => /^ep \d+: .* -> CONNECTED$/.test(line)),
      lines.join('\n'),
    );
    for (const line of lines) assert.ok(!line.includes('\n'), 'one line a call');
  });

  it('makes no line of a call when debugging is off', async () => {
    for (const lines of [await traced(false), (await broken(false)).lines]) {
      assert.deepEqual(
        lines.filter((line) => /^[\w.]+\(/.test(line)),
        [],
      );
    }
  });

  it('shows completions and events as they are taken, one by one and by the batch', async () => {
    const { ia, ep, evd, lines } = await broken(true);
    const events = lines.filter((line) => line.startsWith('event('));
    const [of, on] = [`ep=${ep.id}`, `evd=${evd.id}`];
    const send = `number=DTO_COMPLETION, ${of}, operation=SEND`;
    assert.deepEqual(events, [
      `event(${on}, number=ESTABLISHED, ${of})`,
      `event(${on}, ${send}, cookie=5, status=SUCCESS, bytes=4096)`,
      `event(${on}, ${send}, cookie=6, status=TRANSPORT, bytes=0)`,
      `event(${on}, number=BROKEN, ${of}, cause=PEER_GONE, reason=${GONE})`,
    ]);
    await ia.close();
  });

  it('shows a software event on one line, whatever the consumer has put into it', async () => {
    const { ia, lines } = await openLogged(true);
    const evd = ia.createEvd({ qlen: 1, streams: EvdFlags.SOFTWARE });
    evd.postSe(`a\n\x1b[2J${'x'.repeat(10_000)}`);
    evd.dequeue();
    const line = lines.find((each) => each.startsWith('event(')) ?? '';
    assert.match(line, /number=SOFTWARE, payload=a\\u000a\\u001b\[2Jx+…$/);
    assert.ok(line.length <= 2020);
    await ia.close();
  });
});

describe('a connection that breaks', () => {
  it('is in the log with its cause, from info on', async () => {
    const { infos, ep } = await broken(false);
    assert.deepEqual(infos, [[`ep ${ep.id}: BROKEN: ${GONE}`, { cause: 'PEER_GONE' }]]);
  });
});
