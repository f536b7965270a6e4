// The CM module over librdmacm: questions for datagram services (SIDR), without a kernel.

import assert from 'node:assert/strict';
import {
  type CmResolution,
  type CmResolveOptions,
  type CmResolveRequest,
  type CmResolveResult,
  gidFromIp,
  ipFromGid,
  PortSpace,
  serviceIdOf,
} from '../../../core/spi/index.js';
import { CmHost, CmSwitch, PORT, turns, until } from '../../fake-verbs/cm-host.js';

const serviceId = serviceIdOf(PortSpace.UDP, PORT);
const QKEY = 0x01234567;
const NONE = new Uint8Array(0);

describe('verbs: datagram services through librdmacm', () => {
  let host: CmHost;
  let results: CmResolveResult[];
  let questions: CmResolveRequest[];
  beforeEach(() => {
    host = new CmHost();
    results = [];
    questions = [];
  });
  afterEach(async () => {
    await host.close();
    assert.equal(host.fake.live(), 0);
  });

  const ask = (over: Partial<CmResolveOptions> = {}): CmResolution =>
    host.cm.resolve({
      remoteGid: gidFromIp('10.77.0.2'),
      serviceId,
      privateData: NONE,
      timeoutUs: Infinity,
      onResult: (result) => void results.push(result),
      ...over,
    });
  const serve = (backlog = 4): void => {
    host.cm.listen({ serviceId, backlog, onResolve: (question) => questions.push(question) });
  };

  it('tells the asker queue pair, Q_Key and private data', async () => {
    serve();
    ask({ privateData: Uint8Array.of(4, 5) });
    await until(() => questions.length > 0);
    const [question] = questions as [CmResolveRequest];
    assert.equal(question.privateData.length, 180);
    assert.deepEqual([...question.privateData.subarray(0, 3)], [4, 5, 0]);
    assert.equal(ipFromGid(question.remoteGid), '10.77.0.2');
    assert.equal(question.serviceId, serviceId);
    assert.ok(question.remotePort > 0);
    question.accept({ qpn: 0x77, qkey: QKEY, privateData: Uint8Array.of(1) });
    await until(() => results.length > 0);
    const [{ status, qpn, qkey, privateData }] = results as [CmResolveResult];
    assert.deepEqual([status, qpn, qkey], [0, 0x77, QKEY]);
    assert.equal(privateData.length, 136);
    assert.ok(host.cm.isIdle);
  });

  it('says what only other stacks can: any Q_Key but 0x01234567, any status but 2', async () => {
    serve();
    ask();
    await until(() => questions.length > 0);
    const [question] = questions as [CmResolveRequest];
    assert.throws(() => question.accept({ qpn: 0x77, qkey: 9, privateData: NONE }), {
      code: 'EOPNOTSUPP',
      message: /Q_Key 0x9: librdmacm can only answer with 0x01234567/,
    });
    question.reject({ status: 7, privateData: Uint8Array.of(3) });
    await until(() => results.length > 0);
    assert.deepEqual([results[0]?.status, results[0]?.privateData[0]], [2, 3]);
    assert.match(host.logged.join(), /status 7 leaves as 2/);
  });

  it('a question is answered once, and within the limits', async () => {
    serve();
    ask();
    await until(() => questions.length > 0);
    const [question] = questions as [CmResolveRequest];
    const answer = { qpn: 0x77, qkey: QKEY, privateData: NONE };
    assert.throws(() => question.accept({ ...answer, qpn: 1 }), { code: 'EINVAL' });
    const long = { ...answer, privateData: new Uint8Array(137) };
    assert.throws(() => question.accept(long), {
      code: 'EINVAL',
      message: /data of SIDR_REP is 137;/,
    });
    question.accept(answer);
    assert.throws(() => question.accept(answer), { code: 'ENOTCONN' });
    assert.throws(() => question.reject({ status: 2, privateData: NONE }), { code: 'ENOTCONN' });
    await until(() => results.length > 0);
  });

  it('nobody serves: status 1; nobody takes questions: status 2', async () => {
    ask();
    await until(() => results.length > 0);
    assert.equal(results.pop()?.status, 1);
    host.cm.listen({ serviceId, backlog: 4 });
    ask();
    await until(() => results.length > 0);
    assert.equal(results[0]?.status, 2);
  });

  it('nobody answers', async () => {
    host.fake.set(CmSwitch.UNREACHABLE, 1);
    ask();
    await until(() => results.length > 0);
    assert.deepEqual([results[0]?.status, results[0]?.failure], [-1, 'unreachable']);
    assert.match(host.logged.join(), /no answer from 10\.77\.0\.2 \(GID 0000:.*ETIMEDOUT/);
  });

  it('an address does not resolve', async () => {
    host.fake.set(CmSwitch.ADDR_STATUS, -110);
    ask();
    await until(() => results.length > 0);
    assert.equal(results[0]?.failure, 'unreachable');
  });

  it('the time limit ends it; cancelling ends it without a result', async () => {
    host.fake.set(CmSwitch.DROP_REQ, 1);
    const cancelled = ask();
    ask({ timeoutUs: 1000 });
    await turns();
    assert.equal(cancelled.state, 'SIDR_REQ_SENT');
    cancelled.cancel();
    host.advance(1001);
    await turns();
    assert.deepEqual(
      results.map(({ failure }) => failure),
      ['timed-out'],
    );
    assert.equal(cancelled.state, 'IDLE');
    assert.ok(host.cm.isIdle);
  });

  it('hands out no more questions than the backlog', async () => {
    serve(1);
    for (let i = 0; i < 4; i++) ask();
    for (let i = 0; i < 4; i++) {
      await until(() => questions.length === i + 1);
      await turns();
      assert.equal(questions.length, i + 1);
      questions[i]?.accept({ qpn: 0x70 + i, qkey: QKEY, privateData: NONE });
    }
    await until(() => results.length === 4);
  });
});
