import assert from 'node:assert/strict';
import { type Ia, openIa } from 'dapl';
import { connect } from 'dapl/flow';
import { Fabric, mock } from 'dapl/providers/mock';
import { CONNECTION } from '../../samples/transfer/control.js';
import { decode, encode } from '../../samples/transfer/messages.js';
import { receiveOver } from '../../samples/transfer/receiver.js';

const TO = { address: '192.0.2.1', port: 7471 };

describe('transfer: a receiver in one process with its senders', () => {
  const opened: Ia[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((ia) => ia.close())));

  it('turns away the second of two senders that ask at the same time', async () => {
    const fabric = new Fabric({ seed: 3, autoRun: true });
    const open = async (address: string): Promise<Ia> => {
      const ia = await openIa(mock({ fabric, address }));
      opened.push(ia);
      return ia;
    };
    const there = await open(TO.address);
    const here = await Promise.all([open('192.0.2.2'), open('192.0.2.3')]);
    const { signal } = new AbortController();
    const received = receiveOver(there, {
      ...{ directory: '/nowhere', force: false, listen: TO.address, port: TO.port },
      socket: 'auto',
      provider: 'softroce',
      signal,
      out: process.stdout,
      onListening: () => undefined,
    });
    const senders = await Promise.all(here.map((ia) => connect(ia, { ...TO, ...CONNECTION })));
    const { bytes } = await Promise.race(senders.map((conn) => conn.receive()));
    assert.deepEqual(decode(bytes), { type: 'stop', reason: 'busy with another sender' });
    // It goes on with the first.
    for (const conn of senders) conn.send(encode({ type: 'start', offsetBytes: 0 })).catch(() => 0);
    await assert.rejects(received, /sent "start" instead of "offer"/);
    for (const conn of senders) await conn.close();
  });
});
