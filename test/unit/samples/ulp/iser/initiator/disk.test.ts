// Disks over TCP and iSER with our own target: what a consumer sees, and what it may get wrong.
import assert from 'node:assert/strict';

import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import {
  type BlockBackend,
  type Disk,
  discover,
  type IscsiError,
  IscsiTarget,
  listLuns,
  MemoryBackend,
  openDisk,
  type PortalOptions,
  ReadOnlyBackend,
} from '../../../../../../samples/ulp/iser/index.js';
import { loopback } from '../../../../../support/loopback.js';

const NAME = 'iqn.2026-01.io.test:disk';
const HOST = loopback(51, 1);
const BLOCKS = 4096;
const ACCOUNTS = {
  chap: { name: 'someone', secret: 'one long secret' },
  mutualChap: { name: 'the disk', secret: 'another long secret' },
};
const bytes = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => (at * 31) & 0xff);

const hasCode = (code: IscsiError['code'], message = /./) => ({
  name: 'IscsiError',
  code,
  message,
});

for (const transport of ['tcp', 'iser'] as const) {
  describe(`a disk over ${transport}`, () => {
    let ias: Ia[];
    let target: IscsiTarget;
    let portal: PortalOptions;

    beforeEach(async () => {
      const fabric = new Fabric({ seed: 1, autoRun: true });
      ias = [
        await openIa(mock({ fabric, address: '192.0.2.1' })),
        await openIa(mock({ fabric, address: '192.0.2.2' })),
      ];
      const memory = (): MemoryBackend => new MemoryBackend({ sizeBytes: BLOCKS * 512 });
      target = new IscsiTarget({
        name: NAME,
        luns: new Map<number, BlockBackend>([
          [0, memory()],
          [3, new ReadOnlyBackend(memory())],
        ]),
        ...ACCOUNTS,
      });
      const { chap: own, mutualChap } = ACCOUNTS;
      const common = { transport, chap: { ...own, target: mutualChap } } as const;
      if (transport === 'tcp') {
        const { name } = await target.listenTcp(HOST, 0);
        portal = { ...common, address: HOST, port: Number(name.split(':')[1]) };
      } else {
        target.listenIser(ias[0]!);
        portal = { ...common, address: '192.0.2.1', ia: ias[1]! };
      }
    });
    afterEach(async () => {
      await target.close(0);
      await Promise.all(ias.map((ia) => ia.close('abrupt')));
    });

    const withDisk = async (work: (disk: Disk) => Promise<void>, lun = 0): Promise<void> => {
      const disk = await openDisk({ ...portal, target: NAME, lun });
      try {
        await work(disk);
      } finally {
        await disk.close();
      }
    };

    it('is found, with its LUNs', async () => {
      const [found, ...others] = await discover(portal);
      assert.equal(found?.name, NAME);
      assert.equal(others.length, 0);
      assert.deepEqual(await listLuns({ ...portal, target: NAME }), [0, 3]);
    });

    it('reads what was written, in any length, of any memory', () =>
      withDisk(async (disk) => {
        assert.equal(disk.capacity, BigInt(BLOCKS * 512));
        for (const length of [512, 4096, 8192, 65_536, 1 << 20, (1 << 20) + 512]) {
          for (const memory of [new Uint8Array(length), disk.allocate(length)]) {
            const data = bytes(length);
            await disk.write(7, data);
            await disk.read(7n, memory);
            assert.deepEqual(Buffer.compare(memory, data), 0, `${length} bytes`);
          }
        }
        const part = disk.allocate(4096).subarray(512, 1536);
        await disk.read(7, part);
        assert.deepEqual(part, bytes(1024));
        await disk.write(0, new Uint8Array(0));
        await disk.flush();
      }));

    it('compares and writes, unmaps, resets', () =>
      withDisk(async (disk) => {
        const [old, young] = [new Uint8Array(512), bytes(512)];
        assert.equal(await disk.compareAndWrite(1, old, young), true);
        assert.equal(await disk.compareAndWrite(1, old, young), false);
        await disk.unmap(0, 8n);
        const into = bytes(512);
        await disk.read(1, into);
        assert.deepEqual(into, old);
        await disk.reset();
        await disk.write(1, young, { fua: true });
      }));

    it('refuses what cannot be, by value and limit', () =>
      withDisk(async (disk) => {
        const wrong = 'ISCSI_INVALID_PARAMETER';
        await assert.rejects(disk.read(0, new Uint8Array(5)), hasCode(wrong, /is 5, .* 512/));
        await assert.rejects(disk.read(-1, new Uint8Array(512)), hasCode(wrong, /LBA -1/));
        await assert.rejects(disk.read(BLOCKS, new Uint8Array(512)), hasCode(wrong, /4096 blocks/));
        await assert.rejects(
          disk.compareAndWrite(0, new Uint8Array(512), new Uint8Array(1024)),
          hasCode(wrong),
        );
      }));

    it('tells that it is read-only', () =>
      withDisk(async (disk) => {
        assert.equal(disk.isReadOnly, true);
        await assert.rejects(
          disk.write(0, new Uint8Array(512)),
          hasCode('SCSI_STATUS', /DATA_PROTECT 27\/00 \(write protected\)/),
        );
        await disk.read(0, new Uint8Array(512));
      }, 3));

    it('a call may be given up, and calls after the end are refused', () =>
      withDisk(async (disk) => {
        const given = AbortSignal.abort();
        const aborted = disk.read(0, new Uint8Array(512), { signal: given });
        await assert.rejects(aborted, hasCode('ISCSI_ABORTED'));
        await disk.close();
        await disk.close();
        await assert.rejects(disk.flush(), hasCode('ISCSI_CLOSED'));
      }));

    it('a wrong name, LUN or secret is told when it is opened', async () => {
      const nowhere = openDisk({ ...portal, target: `${NAME}s` });
      await assert.rejects(nowhere, hasCode('ISCSI_LOGIN_REFUSED', /NOT_FOUND/));
      await assert.rejects(
        openDisk({ ...portal, target: NAME, lun: 1 }),
        hasCode('ISCSI_INVALID_PARAMETER', /logical unit/),
      );
      const chap = { ...ACCOUNTS.chap, secret: 'not the secret' };
      await assert.rejects(
        openDisk({ ...portal, target: NAME, chap }),
        hasCode('ISCSI_LOGIN_REFUSED', /AUTHENTICATION_FAILURE/),
      );
      const impostor = { ...ACCOUNTS.mutualChap, secret: 'not its secret' };
      await assert.rejects(
        openDisk({ ...portal, target: NAME, chap: { ...ACCOUNTS.chap, target: impostor } }),
        hasCode('ISCSI_LOGIN_FAILED', /not trusted/),
      );
      for (const [options, message] of [
        [{ port: 0 }, /port is 0/],
        [{ queueDepth: 0 }, /queueDepth is 0/],
        [{ initiatorName: 'me' }, /initiatorName is "me"/],
        [{ chap: { name: 'a', secret: 'short' } }, /of 5 bytes/],
      ] as const) {
        await assert.rejects(
          openDisk({ ...portal, target: NAME, ...options }),
          hasCode('ISCSI_INVALID_PARAMETER', message),
        );
      }
    });

    it('a target that ends in good order is left, and waited for', async () => {
      const notices: string[] = [];
      const reconnect = { firstMs: 1, mostMs: 1, attempts: 3 };
      const notice = (what: string): void => void notices.push(what);
      const disk = await openDisk({ ...portal, target: NAME, notice, reconnect });
      await target.close(5);
      await assert.rejects(disk.read(0, new Uint8Array(512)), hasCode('ISCSI_CONNECTION'));
      assert.ok(notices.length >= 3, notices.join('; '));
      await disk.close();
    });
  });
}
