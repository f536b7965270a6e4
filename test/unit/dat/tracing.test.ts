// The debug log of a connection, as the review of August 2005 wants it: what is called, with names
// and values, and what becomes of it.

import assert from 'node:assert/strict';
import { openFake } from '../../support/fake-provider.js';

async function traced(enabled: boolean): Promise<string[]> {
  const lines: string[] = [];
  const nothing = (): void => undefined;
  const debug = (message: string): void => void lines.push(message);
  const logger = {
    ...{ debug, info: nothing, warn: nothing, error: nothing, isDebugEnabled: () => enabled },
    child: () => logger,
  };
  const { ia, cm, world } = await openFake({ logger });
  const pz = ia.createPz();
  const ep = ia.createEndpoint({ pz });
  ep.connect({ address: '192.0.2.2', connQual: 7 });
  cm.connection.emit({ type: 'established', privateData: new Uint8Array(0) });
  world.pump();
  assert.equal(ep.state, 'CONNECTED');
  return lines;
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
    const lines = await traced(false);
    assert.deepEqual(
      lines.filter((line) => /^\w+\.\w+\(/.test(line)),
      [],
    );
  });
});
