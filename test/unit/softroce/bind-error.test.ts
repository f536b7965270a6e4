/** What is said where a socket cannot be had, and what to take instead. */
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import type { SpiError } from '../../../core/spi/index.js';
import { bindError } from '../../../providers/softroce/port/port-errors.js';

const refused = (code: string, address: string, udpPort = 4791): SpiError =>
  bindError(Object.assign(new Error(`bind ${code}`), { code }), address, udpPort);

const own = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .map(({ address }) => address);

describe('softroce: an address that cannot be opened', () => {
  it('names another one that a second program can have', () => {
    const rows = [
      ['127.0.0.1', '127.0.0.2'],
      ['127.1.2.254', '127.1.2.1'],
    ] as const;
    for (const [taken, other] of rows) {
      const { code, message, hint = '' } = refused('EADDRINUSE', taken);
      assert.equal(code, 'EADDRINUSE');
      assert.equal(message, `${taken}, UDP port 4791 is in use by another program`);
      assert.ok(hint.startsWith(`take ${other} or another address of this machine, or`), hint);
      assert.match(hint, /another udpPort at both ends$/);
    }
  });

  it('lists those of the machine, without the one that is taken', () => {
    const taken = own.find((address) => !address.startsWith('127.')) ?? '::1';
    const { hint = '' } = refused('EADDRINUSE', taken);
    const list = /of this machine \((.*)\)/.exec(hint)?.[1]?.split(', ') ?? [];
    const others = own.filter((each) => each !== taken && !each.startsWith('fe80:'));
    assert.deepEqual(list, others);
    const { hint: foreign } = refused('EADDRNOTAVAIL', '203.0.113.9');
    const all = own.filter((each) => !each.startsWith('fe80:'));
    assert.equal(foreign, `it has ${all.join(', ')}`);
  });

  it('says what privileged ports need, and nothing of them for others', () => {
    const { code, message, hint } = refused('EACCES', '127.0.0.1', 80);
    assert.equal(code, 'EACCES');
    assert.equal(message, 'not permitted to use 127.0.0.1, UDP port 80');
    assert.equal(hint, 'take a udpPort from 1024 on, or run with CAP_NET_BIND_SERVICE');
    assert.equal(refused('EPERM', '127.0.0.1').hint, undefined);
  });

  it('says that there are too many open files', () => {
    const { code, message, hint } = refused('EMFILE', '127.0.0.1');
    assert.equal(code, 'ENOMEM');
    assert.equal(message, 'too many open files for 127.0.0.1, UDP port 4791');
    assert.match(hint ?? '', /ulimit -n/);
  });

  it('passes on what it does not know', () => {
    const { code, message, hint } = refused('EPROTO', '127.0.0.1');
    assert.deepEqual(
      [code, message, hint],
      ['EIO', 'cannot open 127.0.0.1, UDP port 4791: bind EPROTO', undefined],
    );
  });
});
