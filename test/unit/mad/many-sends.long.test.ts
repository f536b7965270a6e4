import assert from 'node:assert/strict';
import { SpiError } from '../../../core/spi/index.js';
import { MadPair } from '../../support/mad-pair.js';

describe('MAD: the sends of an agent', () => {
  it('are 65,536 at most, and those that have ended do not count', async () => {
    const pair = new MadPair();
    pair.network.fate = () => [];
    let ended = 0;
    const agent = pair.asker({ onSend: () => void ended++ });
    pair.a.qp1.holdCompletions = true;
    const one = { ...pair.ask(agent, ''), timeoutUs: 0 };
    for (let i = 0; i < 65_536; i++) agent.send(one);
    assert.throws(
      () => agent.send(one),
      (error: unknown) => error instanceof SpiError && error.code === 'ENOMEM',
    );
    pair.a.qp1.releaseCompletions();
    await pair.world.runFor(0);
    assert.equal(ended, 65_536);
    agent.send(one);
  });
});
