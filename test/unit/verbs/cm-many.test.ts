// Connections over librdmacm, many after another: identifiers are given back, memory stays flat.

import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { PATH_MTU_BYTES, QpState } from '../../../core/spi/index.js';
import { CmHost, CmSwitch, has, type Side, until } from '../../fake-verbs/cm-host.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const heapBytes = (): number => {
  collect();
  return process.memoryUsage().heapUsed;
};

describe('verbs: many connections through librdmacm', () => {
  let host: CmHost;
  beforeEach(() => (host = new CmHost()));
  afterEach(() => host.close());

  it('500 connects and disconnects leave nothing behind', async () => {
    let passive: Side | undefined;
    host.listen((request) => (passive = host.accept(request)));
    const idle = host.fake.live();
    const cycle = async (): Promise<void> => {
      passive = undefined;
      const active = host.connect();
      await until(() => has(active) && passive !== undefined && has(passive));
      active.connection.disconnect();
      await until(() => has(active, 'timewait-exit') && has(passive!, 'timewait-exit'));
    };
    for (let i = 0; i < 200; i++) await cycle();
    const before = heapBytes();
    for (let i = 0; i < 300; i++) await cycle();
    const grown = heapBytes() - before;
    assert.equal(host.fake.live(), idle);
    assert.ok(host.cm.isIdle);
    assert.equal(host.activeTimers, 0);
    assert.ok(grown < 1024 * 1024, `the heap has grown by ${grown} bytes`);
  });

  it('100 connections at a time', async () => {
    const passives: Side[] = [];
    host.listen((request) => passives.push(host.accept(request)), { backlog: 10 });
    const actives = Array.from({ length: 100 }, () => host.connect());
    await until(() => actives.every((side) => has(side)) && passives.length === 100);
    const destinations = new Set(actives.map(({ qp }) => qp.to(QpState.RTR)?.destinationQpn));
    assert.equal(destinations.size, 100);
    actives.forEach(({ connection }, i) => i % 2 === 0 && connection.disconnect());
    passives.forEach(({ connection }) => connection.disconnect());
    const ended = [...actives, ...passives];
    await until(() => ended.every((side) => has(side, 'timewait-exit')));
    assert.ok(host.cm.isIdle);
  });

  it('iWARP: the kernel moves the queue pairs, and there is no timewait', async () => {
    host.fake.set(CmSwitch.IWARP, 1);
    const { active, passive } = await host.pair();
    assert.deepEqual([active.qp.modified, passive.qp.modified], [[], []]);
    active.connection.disconnect();
    await until(() => has(active, 'disconnected') && has(passive, 'disconnected'));
    host.advance(1);
    await until(() => has(active, 'timewait-exit') && has(passive, 'timewait-exit'));
    assert.ok(host.cm.isIdle);
  });

  for (const pathMtuBytes of PATH_MTU_BYTES.slice(1)) {
    it(`path MTU ${pathMtuBytes}`, async () => {
      const { active, passive } = await host.pair({ pathMtuBytes });
      for (const { qp } of [active, passive]) {
        assert.equal(qp.to(QpState.RTR)?.pathMtuBytes, pathMtuBytes);
      }
    });
  }
});
