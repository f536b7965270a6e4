import assert from 'node:assert/strict';

import * as wire from '../../../../../../../samples/ulp/iser/wire/index.js';
import { type LoginFields, LUN, md5, Scene, type SceneOptions, type Sent } from './scene.js';

const textOf = ({ data }: Sent): Map<string, string> => wire.uniqueKeys(wire.parseText(data));
const SECRET = new TextEncoder().encode('a secret of the initiator');
const TARGET_SECRET = new TextEncoder().encode('a secret of the target');
const CHAP: SceneOptions = {
  login: {
    chap: {
      own: { name: 'someone', secret: SECRET },
      target: { name: 'the disk', secret: TARGET_SECRET },
    },
  },
};
const SECURITY = { currentStage: 0 } as const;

/** Speaks CHAP for the target up to its proof. */
function upToProof(scene: Scene, change: (response: Uint8Array) => void): void {
  const first = scene.connect();
  assert(first.type === 'loginRequest' && first.header.currentStage === 0);
  assert.equal(textOf(first).get('AuthMethod'), 'CHAP');
  scene.answerLogin([['AuthMethod', 'CHAP']], false, SECURITY);
  assert.equal(textOf(scene.one()).get('CHAP_A'), '5');
  const challenge = Uint8Array.of(1, 2, 3, 4);
  scene.answerLogin(
    [
      ['CHAP_A', '5'],
      ['CHAP_I', '7'],
      ['CHAP_C', wire.emitBinary(challenge)],
    ],
    false,
    SECURITY,
  );
  const proof = scene.one();
  assert(proof.type === 'loginRequest' && proof.header.transit && proof.header.nextStage === 1);
  const values = textOf(proof);
  const expected = wire.chapResponse(md5, { identifier: 7, challenge }, SECRET);
  assert.equal(values.get('CHAP_R'), wire.emitBinary(expected));
  const asked = wire.readChallenge(values.get('CHAP_I')!, values.get('CHAP_C')!);
  const response = wire.chapResponse(md5, asked, TARGET_SECRET);
  change(response);
  scene.answerLogin(
    [
      ['CHAP_N', 'the disk'],
      ['CHAP_R', wire.emitBinary(response)],
    ],
    true,
    { ...SECURITY, nextStage: 1, tsih: 0 },
  );
}

describe('login of an initiator', () => {
  it('over TCP says who it is, and offers what it wants', () => {
    const scene = new Scene();
    const first = scene.connect();
    assert(first.type === 'loginRequest');
    const { header } = first;
    assert.deepEqual(
      [header.immediate, header.transit, header.currentStage, header.nextStage, header.cmdSn],
      [true, true, 1, 3, 5],
    );
    const offer = textOf(first);
    assert.equal(offer.get('InitiatorName'), 'iqn.2026-01.io.test:initiator');
    assert.equal(offer.get('MaxRecvDataSegmentLength'), '262144');
    assert.equal(offer.get('ErrorRecoveryLevel'), '0');
    assert.equal(offer.has('RDMAExtensions'), false);
    scene.answerLogin(
      [
        ['TargetPortalGroupTag', '1'],
        ['InitialR2T', 'Yes'],
        ['ImmediateData', 'No'],
        ['FirstBurstLength', '65536'],
        ['MaxBurstLength', '131072'],
        ['MaxRecvDataSegmentLength', '4096'],
      ],
      true,
    );
    assert.equal(scene.session.state, 'LOGGED_IN');
    const { initialR2T, immediateData, maxBurstLength, maxSendDataSegment } = scene.parameters!;
    assert.deepEqual(
      { initialR2T, immediateData, maxBurstLength, maxSendDataSegment },
      { initialR2T: true, immediateData: false, maxBurstLength: 131072, maxSendDataSegment: 4096 },
    );
  });

  it('over iSER asks for the RDMA extension, and prepares before its last request', () => {
    const scene = new Scene({ transport: 'iser' });
    const offer = textOf(scene.connect());
    assert.equal(offer.get('RDMAExtensions'), 'Yes');
    assert.equal(offer.has('MaxRecvDataSegmentLength'), false);
    assert.equal(scene.prepared, 1);
    scene.answerLogin(
      [
        ['RDMAExtensions', 'Yes'],
        ['TargetRecvDataSegmentLength', '4096'],
      ],
      true,
    );
    assert.equal(scene.parameters?.maxSendDataSegment, 4096);
    assert.equal(scene.parameters.maxRecvDataSegment, 8192);
  });

  it('a target without the RDMA extension is left', () => {
    const scene = new Scene({ transport: 'iser' });
    scene.logIn([['RDMAExtensions', 'No']]);
    assert.equal(scene.ends[0]?.code, 'ISCSI_PROTOCOL');
    assert.match(scene.ends[0].message, /RDMAExtensions/);
  });

  it('an offer of the target is answered before login goes on', () => {
    const scene = new Scene();
    scene.connect();
    scene.answerLogin([['IFMarker', 'Yes']], false);
    const second = scene.one();
    assert.equal(textOf(second).get('IFMarker'), 'No');
    scene.answerLogin([], true);
    assert.equal(scene.session.state, 'LOGGED_IN');
  });

  it('a text in several parts is asked for', () => {
    const scene = new Scene();
    scene.connect();
    scene.answerLogin([['TargetAlias', 'one']], false, { continue: true });
    const empty = scene.one();
    assert(empty.type === 'loginRequest' && !empty.header.transit && empty.data.length === 0);
    scene.answerLogin([['InitialR2T', 'Yes']], false);
    assert.equal(scene.one().type, 'loginRequest');
    scene.answerLogin([], true);
    assert.equal(scene.parameters?.targetAlias, 'one');
  });

  it('CHAP both ways', () => {
    const scene = new Scene(CHAP);
    upToProof(scene, () => undefined);
    const operational = scene.one();
    assert(operational.type === 'loginRequest' && operational.header.currentStage === 1);
    assert.equal(textOf(operational).has('InitiatorName'), false);
    scene.answerLogin([], true);
    assert.equal(scene.session.state, 'LOGGED_IN');
  });

  it('a target that proves the wrong secret is not trusted', () => {
    const scene = new Scene(CHAP);
    upToProof(scene, (response) => (response[3]! ^= 1));
    assert.equal(scene.ends[0]?.code, 'ISCSI_LOGIN_FAILED');
    assert.equal(scene.sent.length, 0);
  });

  it('a target that wants no proof is not trusted', () => {
    const scene = new Scene(CHAP);
    scene.connect();
    scene.answerLogin([['AuthMethod', 'None']], false, SECURITY);
    assert.equal(scene.ends[0]?.code, 'ISCSI_LOGIN_FAILED');
  });

  it('a refusal is told by its name', () => {
    const scene = new Scene();
    scene.connect();
    scene.answerLogin([], false, { status: wire.LOGIN_STATUS.NOT_FOUND });
    const [error] = scene.ends;
    assert.equal(error?.code, 'ISCSI_LOGIN_REFUSED');
    assert.equal(error.status, 0x0203);
    assert.match(error.message, /NOT_FOUND/);
  });

  for (const [what, pairs, fields] of [
    ['a stage that was not asked for', [], { currentStage: 0 }],
    ['a digest', [['HeaderDigest', 'CRC32C']], {}],
    ['more than one connection', [['MaxConnections', '2']], {}],
    ['a larger burst than was offered', [['MaxBurstLength', '16777215']], {}],
    ['a value that its key cannot have', [['FirstBurstLength', '1']], {}],
    ['a session without a handle', [], { tsih: 0 }],
    ['another task tag', [], { initiatorTaskTag: 9 }],
    ['another version', [], { versionActive: 1 }],
  ] as readonly (readonly [string, readonly wire.TextPair[], LoginFields])[]) {
    it(`${what} ends the session`, () => {
      const scene = new Scene();
      scene.connect();
      scene.answerLogin(pairs, true, fields);
      assert.equal(scene.ends.length, 1);
      assert.equal(scene.ends[0]?.code, 'ISCSI_PROTOCOL');
      assert.equal(scene.session.state, 'FREE');
    });
  }

  it('a target that never comes to an end is left, and so is a silent one', () => {
    const scene = new Scene();
    scene.connect();
    for (let round = 0; round < 40 && scene.ends.length === 0; round++)
      scene.answerLogin([], false);
    assert.match(scene.ends[0]!.message, /does not come to an end/);
    const silent = new Scene();
    silent.connect();
    assert.equal(silent.session.deadlineMs, 16_000);
    silent.session.tick(16_000);
    assert.equal(silent.ends[0]?.code, 'ISCSI_TIMED_OUT');
  });

  it('commands before its end are refused', () => {
    const scene = new Scene();
    scene.connect();
    assert.throws(() => scene.submit({ lun: LUN }), { code: 'ISCSI_CLOSED' });
  });
});
