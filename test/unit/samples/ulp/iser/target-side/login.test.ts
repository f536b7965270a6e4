// Login of a target: keys, stages, authentication, and what is refused, with its status.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

import {
  chapResponse,
  emitBinary,
  LOGIN_STATUS,
  parseText,
  readBinary,
  type TextPair,
} from './formats.js';
import { DISCOVERY_KEYS, INITIATOR, NORMAL_KEYS, Peer, Scene, settle, TARGET } from './scene.js';

const INITIATOR_SECRET = Buffer.from('a secret of the initiator');
const TARGET_SECRET = Buffer.from('another one of the target');
const AUTHENTICATION = {
  initiator: { name: 'someone', secret: INITIATOR_SECRET },
  target: { name: 'the disk', secret: TARGET_SECRET },
};
const md5 = (bytes: Uint8Array): Uint8Array => createHash('md5').update(bytes).digest();
const SECURITY = { currentStage: 0, nextStage: 1, transit: false };
const LEAVE_SECURITY = { currentStage: 0, nextStage: 1, transit: true };
const NAMES: readonly TextPair[] = [
  ['InitiatorName', INITIATOR],
  ['TargetName', TARGET],
  ['SessionType', 'Normal'],
];
const OPERATIONAL = NORMAL_KEYS.filter(
  ([key]) => !['InitiatorName', 'InitiatorAlias', 'TargetName', 'SessionType'].includes(key),
);

describe('iSER target: login', () => {
  it('answers the keys of open-iscsi, and no other', async () => {
    const peer = new Peer(new Scene());
    const answer = await peer.logIn();
    assert.deepEqual(Object.fromEntries(answer), {
      DefaultTime2Wait: '2',
      DefaultTime2Retain: '0',
      IFMarker: 'No',
      OFMarker: 'No',
      ErrorRecoveryLevel: '0',
      InitialR2T: 'Yes',
      ImmediateData: 'Yes',
      MaxBurstLength: '65536',
      FirstBurstLength: '4096',
      MaxOutstandingR2T: '1',
      MaxConnections: '1',
      DataPDUInOrder: 'Yes',
      DataSequenceInOrder: 'Yes',
      InitiatorRecvDataSegmentLength: '8192',
      TargetRecvDataSegmentLength: '8192',
      RDMAExtensions: 'Yes',
      TargetPortalGroupTag: '1',
    });
    const { header } = peer.last('loginResponse');
    assert.equal(header.status, LOGIN_STATUS.SUCCESS);
    assert.deepEqual([header.transit, header.currentStage, header.nextStage], [true, 1, 3]);
    assert.deepEqual([header.expCmdSn, header.maxCmdSn, header.tsih], [7, 7, 1]);
    assert.equal(peer.connection.state, 'LOGGED_IN');
    assert.equal(peer.wire.isEnabled, true);
  });

  it('opens the window behind the answer', async () => {
    const peer = new Peer(new Scene());
    await peer.logIn();
    peer.send('nopOut', { immediate: true, initiatorTaskTag: 9, cmdSn: 7 });
    const { header } = peer.last('nopIn');
    assert.deepEqual([header.expCmdSn, header.maxCmdSn], [7, 10]);
  });

  it('logs in to discovery, where keys of normal sessions are irrelevant', async () => {
    const peer = new Peer(new Scene());
    peer.login([...DISCOVERY_KEYS, ['ImmediateData', 'Yes'], ['X-org.example.key', 'value']]);
    await settle();
    assert.deepEqual(Object.fromEntries(parseText(peer.last('loginResponse').data)), {
      HeaderDigest: 'None',
      DataDigest: 'None',
      ImmediateData: 'Irrelevant',
      'X-org.example.key': 'NotUnderstood',
      MaxRecvDataSegmentLength: '32768',
    });
    assert.equal(peer.connection.sessionType, 'Discovery');
  });

  it('goes through the security stage without authentication', async () => {
    const peer = new Peer(new Scene());
    const first = peer.login([...NAMES, ['AuthMethod', 'CHAP,None']], LEAVE_SECURITY);
    assert.equal(first.get('AuthMethod'), 'None');
    assert.equal(peer.last('loginResponse').header.nextStage, 1);
    peer.login(OPERATIONAL);
    await settle();
    assert.equal(peer.connection.state, 'LOGGED_IN');
  });

  it('takes text in parts', async () => {
    const peer = new Peer(new Scene());
    const whole = Buffer.from(NORMAL_KEYS.map(([key, value]) => `${key}=${value}\0`).join(''));
    const common = { isid: new Uint8Array(6), cmdSn: 7, initiatorTaskTag: 1, currentStage: 1 };
    peer.send('loginRequest', { ...common, continue: true }, whole.subarray(0, 100));
    assert.equal(peer.last('loginResponse').data.length, 0);
    assert.equal(peer.last('loginResponse').header.transit, false);
    peer.send('loginRequest', { ...common, transit: true, nextStage: 3 }, whole.subarray(100));
    await settle();
    assert.equal(peer.connection.state, 'LOGGED_IN');
  });

  describe('CHAP', () => {
    function challenged(peer: Peer): { identifier: number; challenge: Uint8Array } {
      const method = peer.login([...NAMES, ['AuthMethod', 'CHAP,None']], SECURITY);
      assert.equal(method.get('AuthMethod'), 'CHAP');
      const asked = peer.login([['CHAP_A', '7,5']], SECURITY);
      assert.equal(asked.get('CHAP_A'), '5');
      return {
        identifier: Number(asked.get('CHAP_I')),
        challenge: readBinary('CHAP_C', asked.get('CHAP_C') ?? '', 16, 16),
      };
    }
    const proof = (peer: Peer, secret: Uint8Array): readonly TextPair[] => [
      ['CHAP_N', 'someone'],
      ['CHAP_R', emitBinary(chapResponse(md5, challenged(peer), secret))],
    ];

    it('proves both sides to each other', async () => {
      const peer = new Peer(new Scene({ authentication: AUTHENTICATION }));
      const mine = { identifier: 200, challenge: new Uint8Array(16).fill(0xab) };
      const answer = peer.login(
        [
          ...proof(peer, INITIATOR_SECRET),
          ['CHAP_I', '200'],
          ['CHAP_C', emitBinary(mine.challenge)],
        ],
        LEAVE_SECURITY,
      );
      assert.equal(answer.get('CHAP_N'), 'the disk');
      const expected = chapResponse(md5, mine, TARGET_SECRET);
      assert.equal(answer.get('CHAP_R'), emitBinary(expected));
      peer.login(OPERATIONAL);
      await settle();
      assert.equal(peer.connection.state, 'LOGGED_IN');
    });

    const refused = (what: string, act: (peer: Peer) => void): Mocha.Test =>
      it(`refuses ${what}`, async () => {
        const scene = new Scene({ authentication: AUTHENTICATION });
        const peer = new Peer(scene);
        act(peer);
        await settle();
        assert.equal(
          peer.last('loginResponse').header.status,
          LOGIN_STATUS.AUTHENTICATION_FAILURE,
          scene.faults.join(),
        );
        assert.equal(peer.wire.isTerminated, true);
        assert.deepEqual(scene.disk.nexuses, []);
      });
    refused('an initiator that begins behind security', (peer) => void peer.login(NORMAL_KEYS));
    refused('one that wants no method', (peer) => {
      peer.login([...NAMES, ['AuthMethod', 'None']], SECURITY);
    });
    refused('one that leaves the stage at once', (peer) => {
      peer.login(NAMES, LEAVE_SECURITY);
    });
    refused('a wrong secret', (peer) => {
      peer.login(proof(peer, Buffer.from('a wrong secret')), LEAVE_SECURITY);
    });
    refused('a wrong name', (peer) => {
      const [, response] = proof(peer, INITIATOR_SECRET);
      peer.login([['CHAP_N', 'another'], response as TextPair], LEAVE_SECURITY);
    });
    refused('our own challenge sent back', (peer) => {
      const asked = challenged(peer);
      const response = chapResponse(md5, asked, INITIATOR_SECRET);
      peer.login(
        [
          ['CHAP_N', 'someone'],
          ['CHAP_R', emitBinary(response)],
          ['CHAP_I', '1'],
          ['CHAP_C', emitBinary(asked.challenge)],
        ],
        LEAVE_SECURITY,
      );
    });

    it('does not let an initiator leave in the middle', () => {
      const peer = new Peer(new Scene({ authentication: AUTHENTICATION }));
      peer.login([...NAMES, ['AuthMethod', 'CHAP']], LEAVE_SECURITY);
      assert.equal(peer.last('loginResponse').header.transit, false);
      peer.login([['CHAP_A', '5']], LEAVE_SECURITY);
      assert.equal(peer.last('loginResponse').header.transit, false);
    });

    it('refuses keys of CHAP out of order', () => {
      const peer = new Peer(new Scene({ authentication: AUTHENTICATION }));
      peer.login([...NAMES, ['AuthMethod', 'CHAP']], SECURITY);
      peer.login([['CHAP_N', 'someone']], SECURITY);
      assert.equal(peer.last('loginResponse').header.status, LOGIN_STATUS.INITIATOR_ERROR);
    });
  });

  describe('refuses, with the status of RFC 7143', () => {
    const without = (name: string): readonly TextPair[] =>
      NORMAL_KEYS.filter(([key]) => key !== name);
    const instead = (name: string, value: string): readonly TextPair[] =>
      NORMAL_KEYS.map(([key, old]) => [key, key === name ? value : old]);
    const LAST = { currentStage: 1, nextStage: 3, transit: true };
    const CASES: readonly [string, number, readonly TextPair[], object?][] = [
      ['no InitiatorName', LOGIN_STATUS.MISSING_PARAMETER, without('InitiatorName')],
      ['no TargetName', LOGIN_STATUS.MISSING_PARAMETER, without('TargetName')],
      ['another target', LOGIN_STATUS.NOT_FOUND, instead('TargetName', 'iqn.2026-01.org:x')],
      ['another type', LOGIN_STATUS.SESSION_TYPE_NOT_SUPPORTED, instead('SessionType', 'Other')],
      ['a version above 0', LOGIN_STATUS.UNSUPPORTED_VERSION, NORMAL_KEYS, { versionMin: 1 }],
      [
        'a session that is not there',
        LOGIN_STATUS.SESSION_DOES_NOT_EXIST,
        NORMAL_KEYS,
        { tsih: 9 },
      ],
      ['RDMAExtensions=No', LOGIN_STATUS.INITIATOR_ERROR, instead('RDMAExtensions', 'No')],
      ['no RDMAExtensions', LOGIN_STATUS.INITIATOR_ERROR, without('RDMAExtensions')],
      ['a number below', LOGIN_STATUS.INITIATOR_ERROR, instead('MaxBurstLength', '511')],
      ['a number above', LOGIN_STATUS.INITIATOR_ERROR, instead('FirstBurstLength', '16777216')],
      ['no number', LOGIN_STATUS.INITIATOR_ERROR, instead('MaxConnections', 'many')],
      ['no boolean', LOGIN_STATUS.INITIATOR_ERROR, instead('ImmediateData', 'Perhaps')],
      ['digests alone', LOGIN_STATUS.INITIATOR_ERROR, [...NORMAL_KEYS, ['HeaderDigest', 'CRC32C']]],
      ['a key twice', LOGIN_STATUS.INITIATOR_ERROR, [...NORMAL_KEYS, ['InitialR2T', 'No']]],
      ['a key of security', LOGIN_STATUS.INITIATOR_ERROR, [...NORMAL_KEYS, ['AuthMethod', 'None']]],
      ['stage 2', LOGIN_STATUS.INITIATOR_ERROR, NORMAL_KEYS, { ...LAST, currentStage: 2 }],
      [
        'full feature phase',
        LOGIN_STATUS.INITIATOR_ERROR,
        NORMAL_KEYS,
        { ...LAST, currentStage: 3 },
      ],
      ['a step to stage 2', LOGIN_STATUS.INITIATOR_ERROR, NORMAL_KEYS, { ...LAST, nextStage: 2 }],
      ['a step back', LOGIN_STATUS.INITIATOR_ERROR, NORMAL_KEYS, { ...LAST, nextStage: 0 }],
      ['T and C at once', LOGIN_STATUS.INITIATOR_ERROR, NORMAL_KEYS, { ...LAST, continue: true }],
      [
        'a reserved task tag',
        LOGIN_STATUS.INITIATOR_ERROR,
        NORMAL_KEYS,
        { ...LAST, initiatorTaskTag: 0xffffffff },
      ],
    ];
    for (const [what, status, pairs, values] of CASES) {
      it(what, async () => {
        const scene = new Scene();
        const peer = new Peer(scene);
        peer.login(pairs, { ...LAST, ...values });
        await settle();
        assert.equal(peer.last('loginResponse').header.status, status, scene.faults.join());
        assert.equal(peer.wire.isTerminated, true);
        assert.equal(scene.faults.length, 1);
        assert.equal((await peer.connection.ended).isOrderly, false);
        assert.equal(scene.node.connectionCount, 0);
      });
    }

    it('what is negotiated a second time, in another request', () => {
      const peer = new Peer(new Scene());
      peer.login(NORMAL_KEYS, { currentStage: 1, transit: false });
      assert.equal(peer.last('loginResponse').header.status, LOGIN_STATUS.SUCCESS);
      peer.login([['MaxBurstLength', '1024']]);
      assert.equal(peer.last('loginResponse').header.status, LOGIN_STATUS.INITIATOR_ERROR);
    });

    it('a request that is not of the same login', () => {
      for (const other of [
        { cid: 5 },
        { initiatorTaskTag: 5 },
        { cmdSn: 5 },
        { isid: new Uint8Array(6) },
      ]) {
        const peer = new Peer(new Scene());
        peer.login(NORMAL_KEYS, { currentStage: 1, transit: false });
        peer.login([], { ...LAST, ...other });
        assert.equal(peer.last('loginResponse').header.status, LOGIN_STATUS.INITIATOR_ERROR);
      }
    });

    it('text without an end, and requests without an end', () => {
      const long = new Peer(new Scene());
      const part = Buffer.alloc(8192, 'x');
      for (let sent = 0; sent < 3; sent++) {
        long.send('loginRequest', { currentStage: 1, continue: true, initiatorTaskTag: 1 }, part);
      }
      assert.equal(long.last('loginResponse').header.status, LOGIN_STATUS.INITIATOR_ERROR);
      const many = new Peer(new Scene());
      many.login(NORMAL_KEYS, { currentStage: 1, transit: false });
      for (let sent = 0; sent < 40; sent++) many.login([], { currentStage: 1, transit: false });
      assert.equal(many.last('loginResponse').header.status, LOGIN_STATUS.INITIATOR_ERROR);
      assert.equal(many.sent.length, 33);
    });

    it('a session above the number that there may be', async () => {
      const scene = new Scene({ maxSessions: 1 });
      await new Peer(scene).logIn();
      const second = new Peer(scene);
      second.login(NORMAL_KEYS, { ...LAST, isid: Uint8Array.of(0, 2, 0x3d, 0, 0, 2) });
      await settle();
      assert.equal(second.last('loginResponse').header.status, LOGIN_STATUS.OUT_OF_RESOURCES);
      assert.equal(scene.node.sessionCount, 1);
    });

    it('a second connection of a session', async () => {
      const scene = new Scene();
      await new Peer(scene).logIn();
      const second = new Peer(scene);
      second.login(NORMAL_KEYS, { ...LAST, tsih: 1 });
      assert.equal(second.last('loginResponse').header.status, LOGIN_STATUS.TOO_MANY_CONNECTIONS);
    });
  });

  it('over TCP, RDMAExtensions is No', async () => {
    const peer = new Peer(new Scene(), false);
    const answer = await peer.logIn([['MaxRecvDataSegmentLength', '16384']]);
    assert.equal(answer.get('RDMAExtensions'), 'No');
    assert.equal(answer.get('MaxRecvDataSegmentLength'), '32768');
    assert.equal(peer.connection.state, 'LOGGED_IN');
  });

  it('ends a connection that does not log in', async () => {
    const scene = new Scene();
    const peer = new Peer(scene);
    scene.time.pass(14_999);
    assert.equal(peer.wire.isTerminated, false);
    scene.time.pass(1);
    assert.equal(peer.wire.isTerminated, true);
    assert.equal((await peer.connection.ended).reason, 'login takes too long');
  });

  it('a younger session of a port takes the place of the older, which has ended', async () => {
    const scene = new Scene();
    const older = new Peer(scene);
    await older.logIn();
    scene.disk.endsAborted = false;
    older.command(1, { write: true, expectedDataTransferLength: 512 });
    const younger = new Peer(scene);
    younger.login(NORMAL_KEYS);
    await settle();
    assert.equal(older.wire.isTerminated, true);
    assert.equal(younger.sent.length, 0, 'the older one still has a command at the disk');
    scene.disk.executing[0]?.end({ isAborted: true });
    await settle();
    assert.equal(younger.last('loginResponse').header.status, LOGIN_STATUS.SUCCESS);
    assert.equal(scene.node.sessionCount, 1);
    const port = `${INITIATOR},i,0x00023d000001`;
    assert.deepEqual(scene.disk.nexuses, [`+${port}`, `-${port}`, `+${port}`]);
    assert.equal(older.sent.filter(({ type }) => type === 'scsiResponse').length, 0);
  });
});
