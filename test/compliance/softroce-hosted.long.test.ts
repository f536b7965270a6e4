// XRC in a domain that a host process has: the same behaviours as in one of the process.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { loopback } from '../support/loopback.js';
import { describeGroups } from './groups-alone.js';
import { reachingMany } from '../../plugins/testing/suite/transfers/reaching-many.js';

const ACTIVE = loopback(90, 1);
const PASSIVE = loopback(90, 2);

describe('softroce, XRC between processes', () => {
  const directory = mkdtempSync(join(tmpdir(), 'xrc-suite-'));
  let pairs = 0;
  after(() => rmSync(directory, { recursive: true }));

  describeGroups(
    'a domain in a host process',
    {
      capabilities: ['xrc', 'xrc-connections', 'second-adapter', 'rdma-read', 'atomic'],
      async openPair() {
        const key = join(directory, `domain-${++pairs}`);
        writeFileSync(key, '');
        const provider = softroce({ addresses: [PASSIVE], shared: true, shm: false });
        const active = await openIa(softroce({ addresses: [ACTIVE], shm: false }));
        const passive = await openIa(provider);
        return {
          active,
          passive,
          passiveAddress: PASSIVE,
          xrcDomain: { key, named: true },
          openPassiveAgain: (options) => openIa(provider, options),
          close: async () => {
            await Promise.all([active.close(), passive.close()]);
          },
        };
      },
    },
    [reachingMany],
  );
});
