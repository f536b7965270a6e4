/** A MAD module whose surroundings take one small step at a time, as a scenario allows. */
import assert from 'node:assert/strict';
import {
  AsyncEventType,
  gidFromIp,
  GSI_QKEY,
  GSI_QPN,
  type MadAgent,
  type MadSendHandle,
  QpState,
  silentLogger,
  WcStatus,
} from '../../../../core/spi/index.js';
import { Mad } from '../../../../plugins/mad/index.js';
import { RMPP_TYPE } from '../../../../plugins/mad/wire/rmpp-header.js';
import { SeededRandom } from '../../../../providers/mock/index.js';
import { FakeNetwork } from '../../../support/fake-network.js';
import { answerTo, headerOf } from '../../../support/mad-pair.js';
import { type Subject, textOf } from '../../../support/interleaving-search.js';

import {
  RMPP_CLASS,
  RMPP_DATA,
  RMPP_OUI,
  controlOf,
  rmppOf,
  transferOf,
} from '../../../support/rmpp-pair.js';
import { StepDevice, StepWorld } from '../../../support/step-device.js';
import { Observer } from './observer.js';
import { type Option, plainRequest, type Posted, type Scenario } from './scenario.js';

const PEER = gidFromIp('10.0.0.2');
const OWN = gidFromIp('10.0.0.1');
const SEGMENTS = 3;
const TIMEOUT_US = 1_000;
const MAX_REST_STEPS = 1_000;

/** What tells of the past only, or is read by nobody again. */
const IGNORED: ReadonlySet<string> = new Set([
  'counters',
  'rmppCounters',
  'completion',
  'device',
  'network',
  'qp',
  'cq',
  'logger',
  'step',
]);

/** What the peer has of a posted MAD, and what it has said to it. */
interface PeerView {
  readonly posted: Posted;
  readonly mad: Uint8Array;
  readonly handle: MadSendHandle;
  segments: number;
  acknowledged: number;
  responses: number;
}

export class MadSubject implements Subject {
  readonly observer = new Observer();
  private readonly world = new StepWorld();
  private readonly network = new FakeNetwork(this.world);
  private readonly device = new StepDevice(this.network, [OWN], {});
  private readonly mad: Mad;
  private readonly agents: Readonly<Record<'a' | 'b', MadAgent>>;
  private readonly views: PeerView[] = [];
  private readonly done = new Set<string>();
  /** What has been handed to the device to receive. */
  private readonly injected: string[] = [];
  private seen = 0;
  private incoming = 0;
  private again = 0;
  private closed = false;

  constructor(private readonly scenario: Scenario) {
    const { world, device } = this;
    this.network.fate = () => [];
    const services = { timers: world, clock: world, scheduler: world, logger: silentLogger };
    this.mad = new Mad(
      { device, random: new SeededRandom(1), ...services },
      { sendDepth: scenario.sendDepth, receiveDepth: 8 },
    );
    this.agents = { a: this.register('a'), b: this.register('b') };
    for (const posted of scenario.posted) this.post(posted);
    this.look();
  }

  steps(): readonly string[] {
    const { world, device } = this;
    const steps: string[] = [];
    if (world.hasTasks) steps.push('task');
    if (!device.dead && device.stepQp.outstanding.length > 0) steps.push('complete');
    for (let i = 0; i < world.activeTimers; i++) steps.push(`expire: ${i}`);
    for (const option of this.scenario.options) steps.push(...this.stepsOf(option));
    return steps;
  }

  async take(step: string): Promise<void> {
    this.world.step = step;
    const [verb = '', name = ''] = step.split(': ');
    this.actions[verb]?.(name);
    this.look();
    await settle();
    this.check();
  }

  fingerprint(): string {
    const { mad, device, world, views, observer, done, incoming, closed, injected } = this;
    const peer = views.map(({ segments, acknowledged, responses }) => [
      segments,
      acknowledged,
      responses,
    ]);
    const { stepQp, dead } = device;
    const { state, outstanding, unread } = stepQp;
    const unseen = injected.slice(mad.portCounters.received);
    const surroundings = [world, dead, state, outstanding, unread, unseen];
    return textOf([mad, surroundings, peer, observer, done, incoming, closed], IGNORED);
  }

  private check(): void {
    const { violation, allReported } = this.observer;
    if (violation instanceof Error) throw violation;
    const quiet = allReported && this.incoming === 0 && !this.done.has('close');
    if (quiet) assert.equal(this.world.activeTimers, 0, 'a timer is left');
  }

  async finish(): Promise<void> {
    if (this.device.dead) this.device.stepQp.raise(AsyncEventType.DEVICE_FATAL);
    await this.rest();
    this.observer.assertAllReported('is not reported');
    this.unregister('a');
    this.unregister('b');
    await this.rest();
    for (const name of ['a', 'b']) assert.ok(this.observer.ended.has(name), `${name} does not end`);
    assert.ok(this.world.activeTimers === 0, 'a timer is left');
    assert.equal(this.mad.rmppAllowance.bytesHeld, 0, 'bytes of transfers are left');
    assert.equal(this.mad.rmppAllowance.transfersHeld, 0, 'transfers are left');
    const held = [...this.mad['port'].addresses['byKey'].values()].filter(({ users }) => users > 0);
    assert.equal(held.length, 0, 'address handles are held');
    this.close();
    await this.rest();
    assert.ok(this.closed, 'close does not end');
    assert.equal(this.device.liveObjects, 0, 'objects of the device are left');
    assert.equal(this.device.addressHandles.size, 0, 'address handles are left');
  }

  // --- consumer ---------------------------------------------------------------------------------

  private register(name: 'a' | 'b'): MadAgent {
    return this.mad.registerAgent({
      managementClass: RMPP_CLASS,
      classVersion: 1,
      oui: RMPP_OUI,
      methods: name === 'a' ? [3] : [],
      rmpp: true,
      onReceive: (received) => {
        this.observer.onReceive(name, received);
        if (name === 'a' && this.scenario.habit === 'unregisters when it receives') {
          this.unregister('a');
        }
      },
      onSend: (result) => {
        this.observer.onSend(name, result);
        if (name === 'a') this.afterReport();
      },
    });
  }

  private afterReport(): void {
    const { habit, posted } = this.scenario;
    if (habit === 'unregisters when a send is reported') this.unregister('a');
    if (habit === 'cancels everything when a send is reported') {
      for (const { name, agent } of posted) if (agent === 'a') this.cancel(name);
    }
    const may = !this.observer.unregistered.has('a') && this.again === 0;
    if (habit !== 'sends again when a send is reported' || !may) return;
    this.again++;
    try {
      this.post({ name: 'again', agent: 'a', kind: 'tell' });
    } catch (error) {
      assert.match(String(error), /QP1 of the device is gone/);
      this.observer.sent.delete('again');
    }
  }

  private post(posted: Posted): void {
    const agent = this.agents[posted.agent];
    const bytes = posted.kind.endsWith('segments') ? SEGMENTS * RMPP_DATA : RMPP_DATA;
    const transaction = this.views.length + 1;
    const method = posted.kind.startsWith('ask') ? 1 : 3;
    const mad = transferOf(agent, bytes, { method, transaction });
    this.observer.post(posted.name);
    const handle = this.observer.call(() =>
      agent.send({
        destination: { gid: PEER, localGidIndex: 0, qpn: GSI_QPN, qkey: GSI_QKEY },
        data: mad,
        timeoutUs: posted.kind.startsWith('ask') ? TIMEOUT_US : 0,
        retries: this.scenario.retries,
        context: posted.name,
      }),
    );
    this.views.push({ posted, mad, handle, segments: 0, acknowledged: 0, responses: 0 });
  }

  private unregister(name: 'a' | 'b'): void {
    const ended = this.observer.call(() => this.agents[name].unregister());
    this.observer.unregistered.add(name);
    void ended.then(() => this.observer.ended.add(name));
  }

  private cancel(name: string): void {
    const view = this.views.find(({ posted }) => posted.name === name);
    if (view) this.observer.call(() => this.agents[view.posted.agent].cancel(view.handle));
  }

  private close(): void {
    this.done.add('close');
    const closed = this.observer.call(() => this.mad.close());
    for (const name of ['a', 'b']) this.observer.unregistered.add(name);
    void closed.then(() => {
      this.closed = true;
      for (const name of ['a', 'b']) this.observer.ended.add(name);
    });
  }

  // --- steps ------------------------------------------------------------------------------------

  private stepsOf(option: Option): string[] {
    const { device } = this;
    const once = (step: string, when = true): string[] =>
      when && !this.done.has(step) ? [step] : [];
    const alive = !device.dead && device.stepQp.state === QpState.RTS;
    const each = (verb: string, when: (view: PeerView) => boolean): string[] =>
      this.views.filter(when).map(({ posted }) => `${verb}: ${posted.name}`);
    switch (option) {
      case 'fail':
        return once('fail', alive && device.stepQp.outstanding.length > 0);
      case 'cancel':
        return once(`cancel: ${this.scenario.posted[0]?.name ?? ''}`);
      case 'respond':
        return alive ? each('respond', (view) => hasAll(view) && view.responses < 2) : [];
      case 'peer acknowledges':
        return alive ? each('ack', (view) => view.acknowledged < view.segments) : [];
      case 'peer aborts':
        return each(
          'abort',
          ({ posted, segments }) =>
            alive && segments > 0 && !this.done.has(`abort: ${posted.name}`),
        );
      case 'transfer comes in':
        return alive && this.incoming < SEGMENTS ? ['segment'] : [];
      case 'request comes in':
        return once('request', alive);
      case 'removal is told':
      case 'removal flushes':
      case 'removal is silent':
        return once(option, !device.dead);
      default:
        return once(option);
    }
  }

  private readonly actions: Readonly<Record<string, (name: string) => void>> = {
    task: () => this.world.runTask(),
    complete: () => this.device.stepQp.completeOldest(WcStatus.SUCCESS),
    expire: (n) => this.world.expire(Number(n)),
    fail: () => {
      this.done.add('fail');
      this.device.stepQp.completeOldest(WcStatus.LOC_QP_OP_ERR);
    },
    'unregister a': () => {
      this.done.add('unregister a');
      this.unregister('a');
    },
    'unregister b': () => {
      this.done.add('unregister b');
      this.unregister('b');
    },
    cancel: (name) => {
      this.done.add(`cancel: ${name}`);
      this.cancel(name);
    },
    close: () => this.close(),
    respond: (name) => {
      const view = this.viewOf(name);
      view.responses++;
      this.inject(answerTo(view.mad.subarray(0, 256)));
    },
    ack: (name) => {
      const view = this.viewOf(name);
      view.acknowledged = view.segments;
      this.inject(this.control(view, RMPP_TYPE.ACK, 0, view.segments));
    },
    abort: (name) => {
      this.done.add(`abort: ${name}`);
      this.inject(this.control(this.viewOf(name), RMPP_TYPE.ABORT, 127, 0));
    },
    segment: () => {
      this.incoming++;
      const segmentNumber = this.incoming;
      const flags = 1 | (segmentNumber === 1 ? 2 : 0) | (segmentNumber === SEGMENTS ? 4 : 0);
      const { mad } = this.viewOf(this.scenario.posted[0]?.name ?? '');
      const request = controlOf(mad, { segmentNumber, flags, payloadLengthOrNewWindowLast: 0 });
      // Of the peer's own numbering, and to the method that `a` has registered.
      request.set([3], 3);
      request.set([0, 0, 9, 9], 8);
      if (segmentNumber === SEGMENTS) request.set([220], 35);
      this.inject(request);
    },
    request: () => {
      this.done.add('request');
      const { mad } = this.viewOf(this.scenario.posted[0]?.name ?? '');
      this.inject(plainRequest(mad));
    },
    'removal is told': () => {
      this.done.add('removal is told');
      this.device.stepQp.raise(AsyncEventType.DEVICE_FATAL);
    },
    'removal flushes': () => {
      this.done.add('removal flushes');
      this.device.stepQp.modify({ state: QpState.ERR });
    },
    'removal is silent': () => {
      this.done.add('removal is silent');
      this.device.dead = true;
    },
  };

  private viewOf(name: string): PeerView {
    const view = this.views.find(({ posted }) => posted.name === name);
    assert.ok(view, name);
    return view;
  }

  private control({ mad }: PeerView, type: number, status: number, segment: number): Uint8Array {
    const last = type === RMPP_TYPE.ACK ? SEGMENTS : 0;
    const data = controlOf(mad, {
      type,
      status,
      segmentNumber: segment,
      payloadLengthOrNewWindowLast: last,
    });
    data[3] = (data[3] ?? 0) ^ 0x80;
    return data;
  }

  private inject(data: Uint8Array): void {
    this.injected.push(this.world.step);
    this.device.receive(data, PEER, OWN);
  }

  /** What the peer gets to see of what has been transmitted since. */
  private look(): void {
    for (const { data } of this.network.carried.slice(this.seen)) {
      this.seen++;
      const { transactionIdHi, transactionIdLo, method } = headerOf(data);
      const view = this.views[transactionIdLo - 1];
      if (!view || (method & 0x80) !== 0 || rmppOf(data).type > RMPP_TYPE.DATA) continue;
      const name = transactionIdHi === this.agents.a.hiTid ? 'a' : 'b';
      this.observer.onTransmit(name);
      const { segmentNumber } = rmppOf(data);
      if (segmentNumber === 0) view.segments = 1;
      if (segmentNumber === view.segments + 1) view.segments++;
    }
  }

  private async rest(): Promise<void> {
    for (let i = 0; i < MAX_REST_STEPS; i++) {
      await settle();
      const { world, device } = this;
      if (world.hasTasks) world.runTask();
      else if (!device.dead && device.stepQp.outstanding.length > 0) {
        device.stepQp.completeOldest(WcStatus.SUCCESS);
      } else if (world.activeTimers > 0) world.expire(0);
      else return;
      this.look();
      this.check();
    }
    throw new Error('it does not come to rest');
  }
}

function hasAll({ posted, segments }: PeerView): boolean {
  const whole = posted.kind.endsWith('segments') ? SEGMENTS : 1;
  return posted.kind.startsWith('ask') && segments === whole;
}

/** Promises settle to the last. */
async function settle(): Promise<void> {
  for (let i = 0; i < 6; i++) await Promise.resolve();
}
