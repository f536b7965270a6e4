// Who is let in, and what is told to whom: crowds of one address, zones of portals, bursts, MD5.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { IscsiTarget, openDisk } from '../../../../../../samples/ulp/iser/index.js';
import { LOGIN_STATUS } from '../../../../../../samples/ulp/iser/wire/index.js';
import { LOGINS_PER_ADDRESS } from '../../../../../../samples/ulp/iser/session/target-side/index.js';
import { NORMAL_KEYS, Peer, Scene, settle, TARGET } from './scene.js';

const CHAP = { name: 'someone', secret: 'a secret of more than 12 bytes' };
const noMd5 = (): never => {
  throw new Error('unsupported');
};

describe('iSER target: who is let in', () => {
  it('bounds connections of an address that have not logged in, and tells of it once', async () => {
    const scene = new Scene({ maxSessions: 100 });
    const peers = Array.from({ length: LOGINS_PER_ADDRESS }, () => new Peer(scene));
    const [first] = peers;
    const tooMany = [new Peer(scene), new Peer(scene)];
    assert.deepEqual(
      [...peers, ...tooMany].map(({ wire }) => wire.isTerminated),
      [...peers.map(() => false), true, true],
    );
    assert.deepEqual(scene.faults, [
      `more than ${LOGINS_PER_ADDRESS} connections of the test have not logged in`,
    ]);
    await first!.logIn();
    assert.equal(new Peer(scene).wire.isTerminated, false, 'a session is none of them');
  });

  it('tells portals without a zone, and link-local ones to who came by their link', () => {
    const { node } = new Scene();
    const own = '[fe80::1%eth0]:3260';
    const far = '[fe80::2%eth1]:3260';
    const wide = '192.0.2.7:3260';
    for (const portal of [own, far, wide]) node.addPortal(portal, false);
    assert.deepEqual(node.portals(own, false), ['[fe80::1]:3260,1', '192.0.2.7:3260,1']);
    assert.deepEqual(node.portals(wide, false), ['192.0.2.7:3260,1']);
  });

  for (const order of [1, -1]) {
    it(`answers no first burst above a burst, offered in order ${order}`, () => {
      const peer = new Peer(new Scene());
      const lengths: [string, string][] = [
        ['FirstBurstLength', '262144'],
        ['MaxBurstLength', '1024'],
      ];
      const others = NORMAL_KEYS.filter(([key]) => !key.endsWith('BurstLength'));
      const answers = peer.login([...others, ...(order > 0 ? lengths : lengths.reverse())], {
        currentStage: 1,
      });
      assert.equal(answers.get('MaxBurstLength'), '1024');
      assert.equal(answers.get('FirstBurstLength'), '1024');
    });
  }

  it('refuses the login whose proof cannot be computed', () => {
    const authentication = { initiator: { name: 'someone', secret: new Uint8Array(16) } };
    const secrets = { md5: noMd5, random: (bytes: number) => new Uint8Array(bytes) };
    const peer = new Peer(new Scene({ authentication, secrets }));
    const stay = { currentStage: 0 };
    peer.login([...NORMAL_KEYS.slice(0, 4), ['AuthMethod', 'CHAP']], stay);
    peer.login([['CHAP_A', '5']], stay);
    peer.login(
      [
        ['CHAP_N', 'someone'],
        ['CHAP_R', `0x${'00'.repeat(16)}`],
      ],
      stay,
    );
    assert.equal(peer.last('loginResponse').header.status, LOGIN_STATUS.TARGET_ERROR);
    assert.deepEqual(peer.scene.faults, ['CHAP cannot be computed: unsupported']);
    assert.ok(peer.wire.isTerminated);
  });

  it('refuses CHAP at the start where there is no MD5', async () => {
    const { createHash } = crypto;
    crypto.createHash = noMd5;
    syncBuiltinESMExports();
    try {
      const message =
        /^chap needs MD5, and this process has no MD5 \(unsupported\): leave chap out/;
      const luns = new Map();
      assert.throws(() => new IscsiTarget({ name: TARGET, luns, chap: CHAP }), {
        name: 'RangeError',
        message,
      });
      assert.doesNotThrow(() => new IscsiTarget({ name: TARGET, luns }));
      await assert.rejects(
        openDisk({ address: '192.0.2.1', transport: 'tcp', target: TARGET, chap: CHAP }),
        { code: 'ISCSI_INVALID_PARAMETER', message },
      );
    } finally {
      crypto.createHash = createHash;
      syncBuiltinESMExports();
    }
    await settle();
  });
});
